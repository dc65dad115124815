"""The gradient that backward returns is not the derivative of forward.

What it finds
-------------
Every input that requires grad is moved along random directions, and the change of every output is compared with what
backward claims for it. Where the two disagree, the disagreement is traced to one element, which is then measured on
its own. Corners (relu at 0, ties of max) are judged by the interval between their one-sided slopes. Where forward is
made of differentiable torch operations, the same forward under autograd serves as a second, exact witness.

Why it matters
--------------
Training still runs, the loss still falls, and the model is worse than it should be. Nothing raises: PyTorch believes
whatever backward returns, as long as shape and count fit.

Known problems
--------------
A function whose noise is wider than 1 % of its gradient cannot be judged; the verdict is then "unverified".
Gradients that are meant to differ from the derivative have to be declared (`# gradsmith: surrogate[kind]`): a name or a
docstring that mentions a surrogate adds a sentence to the advice, and changes nothing else.
A loop that stops before its limit (a solver, a fixed point) leaves something undone. A gradient of the limit that is off by no
more than that is right, and a note says by how much. On guessed inputs a gradient that no known mistake explains is a warning.
An output in a type that torch does not compute in (float8) is not judged, and a note says so.
Where forward saves a tensor as float8 and the gradient is off by no more than that costs, it is a warning.

References
----------
https://github.com/pytorch/pytorch/pull/59615 (gradcheck's fast mode passes wrong gradients),
https://github.com/graphdeco-inria/gaussian-splatting/issues/551, https://github.com/state-spaces/mamba/issues/368
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.diagnosis.case import Case
    from gradsmith.lab import Lab, Mismatch, Pair

CODE = "GS201"
SEVERITY = "error"
WAIVED_BY = ("surrogate",)
CAUSES = "gradsmith.diagnosis"
OUTCOME = "wrong"
BAD = '''
import torch


class Cube(torch.autograd.Function):
    """x ** 3, whose derivative lost its square."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
'''
GOOD = BAD.replace("grad_output * 3 * x", "grad_output * 3 * x**2").replace("whose derivative lost its square", "right")


def probe(lab: Lab) -> Iterator[Finding]:
    if lab.surrogate or lab.approximate:
        return
    from gradsmith.lab.measure.raw import narrowed

    # What a narrower type loses is the matter of gradient-dtype; what is beyond its digits is wrong.
    lost = narrowed(lab)
    for pair in lab.gradient.wrong:
        rounding = 1e3 * lost.get(pair.leaf.name, 0.0)
        if pair.status == "wrong" and pair.mismatch is not None and pair.off >= rounding:
            yield _in_kernel(lab, _finding(lab, pair, pair.mismatch))
    for pair in (p for p in lab.gradient.imprecise if p.leaf.name not in lost):
        yield from _imprecise(lab, pair)


def _imprecise(lab: Lab, pair: Pair) -> Iterator[Finding]:
    """Digits lost inside backward: not wrong enough to refute, and still not what the input's type promises."""
    from gradsmith.diagnosis.case import case_of
    from gradsmith.diagnosis.low_precision import fits

    if _answers_in_fewer_digits(lab, pair):
        return
    case = case_of(lab, pair)
    fit = fits(case) if case is not None else None
    if fit is not None:
        yield lab.finding(
            f"{lab.target.name}.backward: the gradient of '{pair.leaf.name}' {fit.words}.",
            argument=pair.leaf.name,
            severity="warning",
            cause="low-precision",
            advice=fit.advice,
        )


def _answers_in_fewer_digits(lab: Lab, pair: Pair) -> bool:
    """Forward returns a narrower type than it was given: grad_output then has no more digits to pass on."""
    import torch

    output = lab.gradient.run.outputs[pair.output]
    return bool(torch.finfo(output.dtype).eps > torch.finfo(pair.leaf.tensor.dtype).eps)


def _finding(lab: Lab, pair: Pair, m: Mismatch) -> Finding:
    """The kind of wrong leads; the element with both numbers follows."""
    from gradsmith.diagnosis import diagnose
    from gradsmith.diagnosis.case import Fit, case_of
    from gradsmith.lab.explore.budget import within
    from gradsmith.lab.explore.intent import how_to_declare
    from gradsmith.lab.measure.writes import ruled_out

    cases: list[Case] = []

    def cause() -> Fit | None:
        case = case_of(lab, pair)
        cases.extend([case] if case is not None else [])
        return diagnose(case) if case is not None else None

    fit = within(lab.budget.for_diagnosis(), cause)
    at = f"[{', '.join(map(str, m.element))}]" if m.element else ""
    several = len(lab.gradient.run.differentiable) > 1
    of = f" through {lab.shown_output(m.output, m.output_name)}" if several else ""
    kind = fit.words if fit is not None else "is wrong"
    kept = fit is not None and fit.cause == "output-ignored" and _kept_for_backward(lab, m.output)
    if fit is not None and kept:
        advice = (
            f"{m.output_name} is there for backward only: ctx.mark_non_differentiable(...) in setup_context says so."
        )
        fit = replace(fit, advice=advice)
    found = lab.finding(
        f"{lab.target.name}.backward: the gradient of '{m.argument}'{of} {kind}. At {m.argument}{at}, for a random "
        f"grad_output: backward returned {m.claimed:.6g}, the true gradient is {m.true:.6g}.",
        argument=m.argument,
        severity="warning" if kept or _compressed(lab, pair) else None,
        cause=fit.cause if fit is not None else None,
        line=(fit.line if fit is not None else None) or lab.line_of_gradient(m.argument),
        advice=(
            fit.advice
            if fit is not None
            else f"Derive the gradient of '{m.argument}' again and compare at this element."
        )
        + how_to_declare(lab.target),
        evidence={
            "element": m.element,
            "claimed": m.claimed,
            "true": m.true,
            "error": m.error,
            "ratio": m.ratio,
            **({"leaves out": True} if fit is not None and fit.leaves_out else {}),
            **({"partly right": True} if fit is not None and fit.partly_right else {}),
            **({"only where flat": True} if cases and cases[0].only_where_flat and _distinguishes(lab) else {}),
            "not caused by writes in": within(lab.budget.for_diagnosis(), lambda: ruled_out(lab, pair)) or (),
            **(cases[0].side_by_side(m.element) if cases else {}),
        },
    )
    return _at(found, fit.path, fit.line) if fit is not None and fit.path is not None else found


def _at(finding: Finding, path: str, line: int | None) -> Finding:
    """The finding at a line of another file than the subject's own, if it is one."""
    from gradsmith.source.loaded import line_of

    text = line_of(path, line)
    return replace(finding, path=path, line=line, column=len(text) - len(text.lstrip()), snippet=text.rstrip("\n"))


def _in_kernel(lab: Lab, finding: Finding) -> Finding:
    """The finding at the line of the kernel that stored the number, where a kernel did."""
    from gradsmith.lab.subject.foreign import runs_kernels

    if not runs_kernels(lab.target) or finding.argument is None:
        return finding
    from gradsmith.lab.triton.witness import filled_by

    stores = filled_by(lab, finding.argument)
    unknown = (lab.target.line, lab.line_of_gradient(finding.argument))
    if not stores or finding.line not in unknown:  # a cause that is known has a line of its own
        return finding
    last = stores[-1]
    others = [f"{s.kernel}:{s.line}" for s in stores[:-1]]
    more = f" (before that {', '.join(others[-3:])})" if others else ""
    return replace(
        _at(finding, last.path, last.line),
        message=f"{finding.message[:-1]}; {last.kernel} stores it through {last.argument}{more}.",
        evidence={**finding.evidence, "kernel": last.kernel},
    )


def _distinguishes(lab: Lab) -> bool:
    """Whether backward treats some elements differently from others: who knows where forward is flat, and still gives a
    slope there, may mean it. Who forgets a clamp treats all alike."""
    from gradsmith.lab.explore.coverage.choices import choices

    return any(True for _ in choices(lab.tape.aten(None, "backward")))


def _compressed(lab: Lab, pair: Pair) -> bool:
    """Off by no more than what it costs to save a tensor as float8, which somebody chose to."""
    from gradsmith.lab.measure.compressed import digits_saved

    return 0 < pair.off <= digits_saved(lab)


def _kept_for_backward(lab: Lab, output: int) -> bool:
    """setup_context can only save what forward returns, so that intermediates become outputs nobody else asks for."""
    from torch import Tensor

    from gradsmith.lab.subject.target import has_setup_context

    if output == 0 or lab.target.function is None or not has_setup_context(lab.target.function):
        return False
    for call in lab.observed.trace.forwards:
        outputs = [o for o in call.outputs if isinstance(o, Tensor)]
        if output < len(outputs) and any(t is outputs[output] for t in call.saved):
            return True
    return False

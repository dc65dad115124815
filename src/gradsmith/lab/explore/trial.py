"""One explored example: what becomes of the gradient after these moves."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gradsmith.lab.explore.budget import within
from gradsmith.lab.explore.convergence import stops_too_early
from gradsmith.lab.explore.intent import holds_parts
from gradsmith.lab.explore.move import Kind, Move, applied
from gradsmith.lab.explore.questions import leaves_the_graph
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.compressed import digits_saved
from gradsmith.lab.measure.differences import Probe, dot, one_sided
from gradsmith.lab.measure.gradient import (
    Judgement,
    Mismatch,
    NotNearby,
    Pair,
    Settings,
    distinct,
    judge,
    moved,
    typical_size,
)
from gradsmith.lab.measure.oracle import own_forward
from gradsmith.lab.measure.resemblance import is_smoothed
from gradsmith.lab.measure.screening import is_plainly_right, same_as_autograd
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import once
from gradsmith.lab.run import Allowance, Run, forward, normal_like
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.lab.triton.events import kernels_logged

Status = Literal["right", "wrong", "non-finite", "none", "raises", "rejected", "unjudged"]
_RUNS = 400  # of the subject, to judge one example
_MADE_UP: tuple[Kind, ...] = ("ids", "invented option", "structure")
BAD: tuple[Status, ...] = ("wrong", "non-finite", "none", "raises")


@dataclass(frozen=True)
class Trial:
    """What became of an example. `detail` says why; `own` that the exception stands in the subject's own code as a raise."""

    moves: tuple[Move, ...]
    status: Status
    detail: str = ""
    arguments: Arguments | None = None
    mismatch: Mismatch | None = None
    exception: str = ""  # its type, where backward raises
    own: bool = False  # raised by an `assert` or `raise` of the subject itself

    @property
    def bad(self) -> bool:
        return self.status in BAD


def worth_exploring(lab: Lab) -> bool:
    """Where the gradient is wrong, noisy or right on a constrained domain only, other inputs prove nothing."""
    if lab.surrogate or lab.approximate:
        return True
    judged = lab.gradient
    settled = not judged.wrong and not judged.noisy and not any(p.explained for p in judged.pairs)
    return settled and lab.settings.project is None and bool(judged.pairs)


def examined(lab: Lab, base: Arguments, moves: Sequence[Move], seed: int) -> Trial:
    """The gradient after these moves, held against the truth there."""
    chosen = tuple(moves)
    try:
        arguments = applied(chosen, base, seed)
    except Exception as error:  # a move met values that it was not made for
        return Trial(chosen, "rejected", said(error))
    if arguments is None:
        return Trial(chosen, "rejected", "it changes nothing")
    with kernels_logged() as seen:
        judged = within(Allowance(_RUNS), lambda: judged_at(lab, lab.precise[0], arguments))
    # An id, an option or a structure that gradsmith made up may send a kernel anywhere: that is not the kernel's fault.
    if not any(move.kind in _MADE_UP for move in chosen):
        lab.kernel_events |= seen.events
    if judged is None:
        return Trial(chosen, "unjudged", f"{_RUNS} runs do not settle it")
    return replace(judged, moves=chosen, arguments=arguments)


@once
def is_autograds(lab: Lab) -> bool:
    """Whether autograd of the user's own forward is the truth: it was, measured by differences, for every input and output of
    the example, and forward takes nothing out of the graph. Then it need not be measured again elsewhere."""
    judged = lab.gradient
    measured = judged.oracle is not None and all(p.truth is not None for p in judged.pairs)
    return measured and not leaves_the_graph(lab.tape) and not holds_parts(lab.target)


def judged_at(lab: Lab, target: Target, arguments: Arguments) -> Trial:
    """The gradient of the subject on these arguments, with no move to tell of."""
    nothing: tuple[Move, ...] = ()
    seed, settings = lab.settings.seed, _settings(lab)
    try:
        run = forward(target, arguments, seed=seed)
    except Exception as error:
        return Trial(nothing, "rejected", said(error))
    if not all(finite(o) for o in run.outputs if o.is_floating_point() or o.is_complex()):
        return Trial(nothing, "unjudged", "its outputs are not finite")
    if not run.differentiable:
        return Trial(nothing, "unjudged", "it has no gradient")
    v = run.normal(lab.generator(7))
    try:
        grads = run.gradients(v)
    except Exception as error:  # the user's backward, on inputs that forward took
        return Trial(nothing, "raises", said(error), exception=type(error).__name__, own=_raised_by(target, error))
    if (spoilt := _not_finite(arguments, grads)) and _finite_by_autograd(lab, target, run, v, spoilt[0]):
        return Trial(nothing, "non-finite", f"the gradient of '{spoilt[1]}' is NaN or infinite")
    if spoilt or lab.surrogate or lab.approximate:
        why = (
            "the gradient is not finite, nor is that of autograd" if spoilt else "it is not meant to be the derivative"
        )
        return Trial(nothing, "unjudged", why)
    try:
        if is_autograds(lab) and same_as_autograd(run, v, grads, settings):
            return Trial(nothing, "right")
        if is_plainly_right(run, v, settings, grads):
            return Trial(nothing, "right")
        judged = judge(target, arguments, settings, until_wrong=True)
        seen = {pair.leaf.position for pair in judged.pairs}
        if not judged.wrong and not seen.issuperset(x.position for x in distinct(arguments.differentiable)):
            judged = judge(target, arguments, settings)
    except NotNearby as error:
        return Trial(nothing, "unjudged", str(error))
    found = _weighed(lab, arguments, judged)
    if found.status == "wrong" and stops_too_early(lab, target, arguments):
        return Trial(nothing, "unjudged", "its iterations have not converged there")
    wrong = [p for p in judged.wrong if p.mismatch is not None]
    if found.status == "wrong" and not any(_smooth(judged, pair, lab.settings) for pair in wrong):
        return Trial(nothing, "unjudged", "forward has a corner there")
    return found


def _weighed(lab: Lab, arguments: Arguments, judged: Judgement) -> Trial:
    nothing: tuple[Move, ...] = ()
    wrong = [p for p in judged.wrong if p.status == "wrong" and p.mismatch is not None]
    if not wrong:
        missing = [p for p in judged.wrong if p.status == "missing"]
        if missing:
            return Trial(
                nothing, "none", f"the gradient of '{missing[0].leaf.name}' is None", mismatch=missing[0].mismatch
            )
        return Trial(nothing, "unjudged" if judged.noisy else "right", "noise is too wide" if judged.noisy else "")
    if all(p.flat for p in lab.gradient.pairs) and not any(_slopes_by_autograd(judged, p) for p in wrong):
        return Trial(nothing, "unjudged", "forward is locally constant at the example: a step, or a surrogate")
    wrong = [p for p in wrong if not _vanishing(p) and not _rounded(p) and not _negligible(lab, p)]
    if not wrong:
        return Trial(nothing, "unjudged", "the gradient is off by rounding only, or too small to be told from none")
    if is_smoothed(judged, lab.settings):
        return Trial(nothing, "unjudged", "the gradient passes through a step of forward as if there was none")
    digits = digits_saved(lab, arguments)
    if digits and all(pair.off <= digits for pair in wrong):
        return Trial(nothing, "unjudged", "it keeps fewer digits for backward")
    return Trial(nothing, "wrong", mismatch=wrong[0].mismatch)


def _slopes_by_autograd(judged: Judgement, pair: Pair) -> bool:
    """Whether autograd, too, finds a slope in forward there: then it is no step, but a branch that the example did not reach."""
    if judged.oracle is None:
        return False
    return bool(judged.oracle.gradients(pair.output, pair.v)[pair.leaf.position].any())


def _vanishing(pair: Pair) -> bool:
    """Numbers whose square is not a number any more: what backward computed them from has lost its digits."""
    m = pair.mismatch
    return m is not None and max(abs(m.claimed), abs(m.true)) < 1e-150


def _negligible(lab: Lab, pair: Pair) -> bool:
    """Off by less than a rounding of what the gradient is at the example: 1e-21 where 0 would be exact."""
    m = pair.mismatch
    here = [p.claimed for p in lab.gradient.pairs if p.leaf.position == pair.leaf.position and p.claimed.numel()]
    size = max((float(g.abs().max()) for g in here if finite(g)), default=0.0)
    return m is not None and abs(m.claimed - m.true) <= 1e-16 * size


def _rounded(pair: Pair) -> bool:
    """Off by less than 1 in 10,000: digits were lost, which is another matter (low-precision) than a wrong formula."""
    m = pair.mismatch
    return m is not None and abs(m.claimed - m.true) <= 1e-4 * max(abs(m.claimed), abs(m.true))


def _smooth(judged: Judgement, pair: Pair, settings: Settings) -> bool:
    """Whether forward has one slope there, and not one to each side: at ties and zeros any of several may be right."""
    run, size = judged.run, typical_size(pair.leaf.tensor)
    u = normal_like(pair.leaf.tensor, torch.Generator().manual_seed(settings.seed + 29)) * size
    evaluate = moved(run.target, run.arguments, pair.leaf, u, settings)
    v = pair.v if pair.v.is_complex() else pair.v.double()
    probe = Probe(pair.output, v, 1.0)
    eps = torch.finfo(pair.dtype).eps
    left, right = one_sided(evaluate, probe, 1e-5 if pair.dtype == torch.float64 else 1e-2, eps)
    size = max(abs(left.value), abs(right.value), abs(dot(pair.claimed, u)))
    return abs(left.value - right.value) <= 1e-3 * size + 10 * (left.error + right.error)


def _settings(lab: Lab) -> Settings:
    """Digits lost inside backward have been reported, and are no more wrong elsewhere."""
    if not lab.gradient.imprecise:
        return lab.settings
    return replace(lab.settings, rtol=max(lab.settings.rtol or 0.0, 1e-4))


def _not_finite(arguments: Arguments, grads: dict[int, Tensor | None]) -> tuple[int, str] | None:
    for leaf in arguments.differentiable:
        grad = grads.get(leaf.position)
        if grad is not None and not bool(torch.isfinite(grad).all()):
            return leaf.position, leaf.name
    return None


def _finite_by_autograd(lab: Lab, target: Target, run: Run, v: dict[int, Tensor], position: int) -> bool:
    """Where PyTorch's own gradient of this forward is NaN as well, the custom one is no worse."""
    oracle = own_forward(target, run, lab.settings.seed, lab.settings.reference)
    if oracle is None or not any(o.requires_grad for o in oracle.outputs):
        return False
    return all(bool(torch.isfinite(oracle.gradients(o, g)[position]).all()) for o, g in v.items())


def _raised_by(target: Target, error: BaseException) -> bool:
    """Whether an `assert` or `raise` in the subject's own file made this exception."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or target.path is None or frames[-1].filename != target.path:
        return False
    line = (frames[-1].line or "").lstrip()
    return line.startswith(("raise", "assert"))


def said(error: BaseException) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}"

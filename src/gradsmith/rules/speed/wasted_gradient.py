"""backward computes expensive gradients that are not needed

What it finds
-------------
A backward that returns two or more gradients, at least one of which costs a matrix product, a convolution or the
like, and computes it without looking at `ctx.needs_input_grad`. Cheap elementwise gradients are left alone.

Why it matters
--------------
Frozen weights, inputs of the first layer and fine-tuning with adapters need only some of the gradients. Measured on
torch 2.13: a linear layer whose input needs no gradient, 3.31 ms per backward without the test, 1.71 ms with it.

Known problems
--------------
The source does not tell whether all gradients are always needed, so this is information only until it is measured. A
kernel that computes several gradients at once cannot be split and is not reported.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.function.FunctionCtx
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.knowledge import LINEAR_ALGEBRA
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.profiling import Profile
    from gradsmith.profiling.events import Event
    from gradsmith.source import FunctionModel, Method

CODE = "GS501"
SEVERITY = "info"
EXPLAINS = ("slower-than-autograd",)
FIXABLE = False
BAD = """
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x


gradsmith_inputs = {
    "Linear": lambda: (
        torch.randn(64, 48, dtype=torch.float64, requires_grad=True),
        torch.randn(32, 48, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = """
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t() @ x if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


gradsmith_inputs = {
    "Linear": lambda: (
        torch.randn(64, 48, dtype=torch.float64, requires_grad=True),
        torch.randn(32, 48, dtype=torch.float64, requires_grad=True),
    )
}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or not function.has_gradient:
        return
    for found in backward.returns:
        elements = found.elements or []
        given = [i for i, e in enumerate(elements) if not (isinstance(e, ast.Constant) and e.value is None)]
        if len(given) < 2:
            continue
        costly = {i: node for i in given if (node := _expensive(backward, elements[i])) is not None}
        names = [p.name for i in costly if (p := function.input_at(i)) is not None]
        if not names or len(names) != len(costly):
            continue
        node = next(iter(costly.values()))
        shown = ", ".join(f"'{n}'" for n in names)
        whats = dict.fromkeys(f"a {_what(backward, one)}" for one in costly.values())
        yield function.at(
            node,
            f"{function.name}.{backward.name} always computes the {'gradients' if len(names) > 1 else 'gradient'} of {shown} "
            f"({'each costs ' if len(whats) == 1 < len(names) else ''}{' and '.join(whats)}), also when "
            f"{'an' if len(names) > 1 else 'that'} input does not require a gradient.",
            advice="; ".join(
                f"{'Compute' if first else 'compute'} the gradient of '{name}' only `if ctx.needs_input_grad[{i}]`"
                for first, i, name in zip([True] + [False] * len(names), costly, names)
            )
            + ". Return None otherwise.",
            argument=names[0] if len(names) == 1 else None,
        )
        return


def _expensive(method: Method, element: ast.expr) -> ast.AST | None:
    """The costly operation this gradient alone is computed by, unless a test of needs_input_grad stands before it."""
    value = method.resolve(element)
    for node in nodes_under(value):
        if method.op(node) in LINEAR_ALGEBRA and method.needs_tested(node) == frozenset():
            return node
    return None


def _what(method: Method, node: ast.AST) -> str:
    op = method.op(node) or ""
    if "conv" in op:
        return "convolution"
    return "matrix product" if op in know.PRODUCTS else f"`{op}`"


def probe(lab: Lab) -> Iterator[Finding]:
    """Freeze one input at a time and see whether its gradient is computed all the same."""
    from torch import Tensor

    from gradsmith.lab.measure.raw import argument_names, forward_of
    from gradsmith.lab.subject.target import short_name

    leaves = lab.arguments.differentiable
    if lab.target.function is None or len(leaves) < 2:
        return
    wasted: list[str] = []
    for frozen in leaves:
        run = lab.run(lab.arguments.only({x.position for x in leaves if x is not frozen}))
        if not run.differentiable:
            continue
        try:
            run.gradients(run.normal(lab.generator(3)))
        except Exception:  # a backward that cannot bear the frozen input: frozen-input reports it
            continue
        for backward in run.trace.backwards:
            forward = forward_of(run.trace, backward)
            if forward is None:
                continue
            names = argument_names(backward.cls, len(forward.args))
            for i, returned in enumerate(backward.returned[: len(forward.args)]):
                unneeded = i < len(forward.needs_input_grad) and not forward.needs_input_grad[i]
                given = any(returned is g for g in backward.grad_outputs)
                if isinstance(returned, Tensor) and unneeded and not given and isinstance(forward.args[i], Tensor):
                    wasted.append(names[i])
    if wasted:
        shown = ", ".join(f"'{name}'" for name in dict.fromkeys(wasted))
        yield lab.finding(
            f"{short_name(lab.target.function)}.backward computes the gradient of {shown} even when it is not needed.",
            argument=wasted[0] if len(set(wasted)) == 1 else None,
            advice="Compute each gradient only `if ctx.needs_input_grad[i]`, and return None otherwise.",
        )


_LARGE = 1 << 14  # bytes


def profile(profile: Profile) -> Iterator[Finding]:
    """What the gradients that these inputs do not ask for cost; for those they do ask for, what freezing would waste."""
    bench = profile.bench
    if bench is None or bench.target.function is None or bench.forward_only:
        return
    leaves = bench.arguments.leaves
    asked = [x for x in leaves if x.differentiable]
    unasked = [x for x in leaves if not x.differentiable and x.tensor.is_floating_point()]
    for frozen in [*unasked, *(asked if len(asked) > 1 else ())]:
        returned = _returned_for(profile, frozen.name, frozen.position)
        if returned is None:
            continue
        own = [e for e in profile.recording.of("backward") if e.own_frames and not e.is_view and e.fresh]
        last = [e for e in own if not profile.flow.consumers(e) and any(a.shape == returned for a in e.outputs)]
        # Several gradients of one shape: the source says which line this one is from, else they come in the order of the inputs.
        lines = _lines_of(bench.target.function, frozen.position)
        last = [e for e in last if e.site is not None and e.site.line in lines] or last
        alike = [x.position for x in leaves if tuple(x.tensor.shape) == returned]
        rank = alike.index(frozen.position) if frozen.position in alike else 0
        last = last[rank : rank + 1] if len(last) == len(alike) else last if len(last) == 1 or len(alike) == 1 else []
        events = _only_for(profile, own, last)
        real = frozen in unasked
        if not any(e.flops or (real and e.read_bytes > _LARGE) for e in events):
            continue  # nothing that anybody would notice; or only if the input were frozen, and then not much
        share = profile.share(events)
        yield profile.finding(
            events[-1].site,
            f"{profile.place(events[-1].site)}: backward computes the gradient of '{frozen.name}' "
            + (f"though it is not needed ({share:.0%} of the run time)." if real else "even when it is frozen."),
            advice="Compute each gradient only `if ctx.needs_input_grad[i]`, and return None otherwise.",
            argument=frozen.name,
            share=share if real else 0.0,
            gain=profile.gain(profile.seconds(events)) if real else None,
        )
        return


def _lines_of(cls: Any, position: int) -> range:
    """The lines that compute what backward returns at this position; none where the source does not say."""
    from gradsmith.source import model_of

    model = model_of(cls)
    given = model.gradients_of(position) if model is not None else None
    if model is None or model.backward is None or given is None or len(given) != 1:
        return range(0)
    found: ast.expr | ast.stmt = given[0]
    if isinstance(found, ast.Name):
        bindings = [b for b in model.backward.definitions(found) if b.how == "assign" and not _is_none(b.value)]
        made = [b.statement for b in bindings if b.statement is not None]
        if len(made) != 1:
            return range(0)
        found = made[0]
    return range(found.lineno, (found.end_lineno or found.lineno) + 1)


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _only_for(profile: Profile, own: list[Event], last: list[Event]) -> list[Event]:
    """These operations, and those before them whose results go nowhere else."""
    wasted = {e.index for e in last}
    for event in reversed(own):
        readers = profile.flow.consumers(event)
        if readers and all(r.index in wasted for r in readers):
            wasted.add(event.index)
    return [e for e in own if e.index in wasted]


def _returned_for(profile: Profile, name: str, position: int) -> tuple[int, ...] | None:
    """The shape of what backward returns for this input when nobody needs it; None if it returns None."""
    from torch import Tensor

    from gradsmith.lab.measure.raw import argument_names, forward_of
    from gradsmith.lab.run import forward

    bench = profile.bench
    assert bench is not None and bench.target.function is not None
    others = {x.position for x in bench.arguments.differentiable if x.position != position}
    run = forward(bench.target, bench.arguments.only(others), seed=bench.seed, classes=(bench.target.function,))
    if not run.differentiable:
        return None
    run.gradients(run.ones())
    for backward in run.trace.backwards:
        call = forward_of(run.trace, backward)
        if call is None:
            continue
        names = argument_names(backward.cls, len(call.args))
        for i, given in enumerate(backward.returned[: len(call.args)]):
            echoed = any(given is g for g in backward.grad_outputs)
            if names[i] == name and isinstance(given, Tensor) and not echoed and not call.needs_input_grad[i]:
                return tuple(given.shape)
    return None

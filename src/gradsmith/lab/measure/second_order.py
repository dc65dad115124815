"""The derivative of the gradient: the gradient itself, taken as a function of inputs and grad_outputs, is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.differences import Probe, slopes
from gradsmith.lab.measure.gradient import (
    LEAST_RUNS,
    Judgement,
    Mismatch,
    Pair,
    Settings,
    distinct,
    judge,
    moved,
    typical_size,
)
from gradsmith.lab.measure.screening import is_plainly_right
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import once
from gradsmith.lab.run import Run, flat_outputs, forward, require
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target


@dataclass(frozen=True)
class SecondOrder:
    """What happens when the gradient is differentiated: `judgement`, or the words in which it is `refused`."""

    judgement: Judgement | None = None
    refused: str = ""
    without_graph: str = ""  # the gradients that are no function of anything to autograd, in words

    @property
    def wrong(self) -> bool:
        return self.judgement is not None and bool(self.judgement.wrong)


@once
def second_order(lab: Lab) -> SecondOrder:
    """Differentiate twice and compare with differences of the first gradient."""
    target, arguments, names = _gradient_as_subject(lab)
    settings = replace(lab.settings, reference=None, project=None)
    try:
        run = forward(target, arguments, seed=settings.seed)
        if refused := _once_differentiable([out.grad_fn for out in run.outputs]):
            return SecondOrder(refused=refused)
        without = _without_graph(run, names)
        if run.differentiable and is_plainly_right(run, run.normal(lab.generator(19)), settings):
            return SecondOrder(Judgement(run, [], None), without_graph=without)
        require(LEAST_RUNS * len(distinct(arguments.differentiable)))
        judged = judge(target, arguments, settings)
        for pair in judged.pairs:
            _measure_where_not_finite(target, arguments, settings, pair, judged.run)
        return SecondOrder(judged, without_graph=without)
    except Exception as error:  # once_differentiable and the like refuse with an exception of any kind
        return SecondOrder(refused=str(error).splitlines()[0] if str(error) else type(error).__name__)


@dataclass(frozen=True)
class Constant:
    """A gradient that autograd takes for a constant although it changes with the inputs: by how much, along `argument`."""

    argument: str
    true: float


def silent_constant(lab: Lab) -> Constant | None:
    """What `once_differentiable` leaves to a grad_output that needs no gradient: no error, and no second derivative.

    That is the usual case: `torch.autograd.grad(y.sum(), x, create_graph=True)`.
    """
    target, arguments, _ = _gradient_as_subject(lab)
    count = len(lab.precise[1].differentiable)
    values = [leaf.tensor.detach() for leaf in arguments.leaves]
    v = values[count:]

    def gradient(xs: list[Tensor]) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = target.call(*(x.clone().requires_grad_() for x in xs), *v)
        return found

    generator = torch.Generator().manual_seed(lab.settings.seed)
    try:
        here = gradient(values[:count])
        if not here or any(g.requires_grad for g in here):
            return None
        for index, x in enumerate(values[:count]):
            if x.dtype != torch.float64:
                continue
            step = torch.randn(x.shape, dtype=x.dtype, generator=generator).to(x.device) * _STEP
            ahead, behind = (
                gradient([other + sign * step if i == index else other for i, other in enumerate(values[:count])])
                for sign in (1, -1)
            )
            change = max(float(((a - b) / (2 * _STEP)).abs().max()) for a, b in zip(ahead, behind) if a.numel())
            scale = max(float(g.abs().max()) for g in here if g.numel())
            if change > 1e-3 * max(scale, 1e-30):
                return Constant(arguments.leaves[index].name, change)
    except Exception:  # user code, in a place where it may refuse anything
        return None
    return None


_STEP = 1e-4


def _once_differentiable(roots: list[Any]) -> str:
    """`once_differentiable` puts an Error node behind its results, which `autograd.grad` to other inputs walks past."""
    stack, seen = list(roots), set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if type(node).__name__ == "Error":
            return "backward is marked with @once_differentiable"
        stack.extend(parent for parent, _ in node.next_functions)
    return ""


def _without_graph(run: Run, names: list[str]) -> str:
    """Gradients that autograd takes for constants. One that is zero is right to be one: it may not depend on anything."""
    cut = [name for name, out in zip(names, run.outputs) if not out.requires_grad and bool((out != 0).any())]
    if not cut:
        return ""
    return "the gradient" if len(cut) == len(names) else "the gradient of " + ", ".join(f"'{name}'" for name in cut)


def _measure_where_not_finite(target: Target, arguments: Arguments, settings: Settings, pair: Pair, run: Run) -> None:
    """NaN agrees with nothing and disagrees with nothing: one such element is measured on its own."""
    strange = torch.nonzero(~torch.isfinite(pair.claimed).reshape(-1)).flatten()
    if pair.mismatch is not None or not strange.numel() or not finite(run.outputs[pair.output]):
        return
    x, index = pair.leaf.tensor.detach(), int(strange[0])
    size = typical_size(x)
    step = torch.zeros_like(x).contiguous()
    step.view(-1)[index] = size
    scale = float(torch.linalg.vector_norm(pair.v.abs().double())) or 1.0
    (slope,) = slopes(
        moved(target, arguments, pair.leaf, step, settings), [Probe(pair.output, pair.v, scale)], pair.dtype
    )
    if slope.error <= _CLEAR * max(abs(slope.value), scale):
        element = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), x.shape))
        name = run.output_names[pair.output]
        claimed = float(pair.claimed.reshape(-1)[index].real)
        pair.status = "wrong"
        pair.mismatch = Mismatch(
            pair.leaf.position,
            pair.leaf.name,
            pair.output,
            name,
            element,
            claimed,
            slope.value / size,
            slope.error / size,
        )


_CLEAR = 0.01  # a slope with less noise than this share is finite


def _gradient_as_subject(lab: Lab) -> tuple[Target, Arguments, list[str]]:
    """The gradient as a function of inputs and grad_outputs, its arguments, and whose gradients it returned last."""
    target, arguments = lab.precise
    returned: list[str] = []
    leaves = arguments.differentiable
    v = lab.baseline.v
    used = list(v)

    def gradient(*values: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            xs = [x if x.requires_grad else x.detach().requires_grad_() for x in values[: len(leaves)]]
            replaced: dict[int, Tensor] = {leaf.position: x.clone() for leaf, x in zip(leaves, xs)}
            args, kwargs = arguments.with_tensors(arguments.beside_copies(replaced))
            outputs, _ = flat_outputs(target.call(*args, **kwargs))
            grads = torch.autograd.grad(
                [outputs[o] for o in used], xs, list(values[len(leaves) :]), create_graph=True, allow_unused=True
            )
        returned[:] = [leaf.name for leaf, g in zip(leaves, grads) if g is not None]
        # Copies: a backward may return a buffer that it fills again the next time.
        return tuple(g.clone() for g in grads if g is not None)

    names = [leaf.name for leaf in leaves] + [f"grad_output {o}" if len(used) > 1 else "grad_output" for o in used]
    values: list[Any] = [leaf.tensor.detach().clone().requires_grad_() for leaf in leaves]
    values += [v[o].detach().clone().requires_grad_() for o in used]
    subject = Target(f"gradient of {target.name}", gradient, "callable", tuple(names))
    return subject, Arguments.of(values, names=names), returned

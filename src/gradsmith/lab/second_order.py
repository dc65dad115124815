"""The derivative of the gradient: the gradient itself, taken as a function of inputs and grad_outputs, is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.arguments import Arguments
from gradsmith.lab.gradient import Judgement, judge
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import flat_outputs, forward
from gradsmith.lab.screening import is_plainly_right
from gradsmith.lab.target import Target


@dataclass(frozen=True)
class SecondOrder:
    """What happens when the gradient is differentiated: `judgement`, or the words in which it is `refused`."""

    judgement: Judgement | None = None
    refused: str = ""

    @property
    def wrong(self) -> bool:
        return self.judgement is not None and bool(self.judgement.wrong)


@once
def second_order(lab: Lab) -> SecondOrder:
    """Differentiate twice and compare with differences of the first gradient."""
    target, arguments = _gradient_as_subject(lab)
    settings = replace(lab.settings, reference=None, project=None)
    try:
        run = forward(target, arguments, seed=settings.seed)
        if refused := _once_differentiable([out.grad_fn for out in run.outputs]):
            return SecondOrder(refused=refused)
        if run.differentiable and is_plainly_right(run, run.normal(lab.generator(19)), settings):
            return SecondOrder(Judgement(run, [], None))
        return SecondOrder(judge(target, arguments, settings))
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
    target, arguments = _gradient_as_subject(lab)
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


def _gradient_as_subject(lab: Lab) -> tuple[Target, Arguments]:
    target, arguments = lab.precise
    leaves = arguments.differentiable
    v = lab.baseline.v
    used = list(v)

    def gradient(*values: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            xs = [x if x.requires_grad else x.detach().requires_grad_() for x in values[: len(leaves)]]
            replaced: dict[int, Tensor] = {leaf.position: x.clone() for leaf, x in zip(leaves, xs)}
            args, kwargs = arguments.with_tensors(_non_leaf(arguments, replaced))
            outputs, _ = flat_outputs(target.call(*args, **kwargs))
            grads = torch.autograd.grad(
                [outputs[o] for o in used], xs, list(values[len(leaves) :]), create_graph=True, allow_unused=True
            )
        return tuple(g for g in grads if g is not None)

    names = [leaf.name for leaf in leaves] + [f"grad_output {o}" if len(used) > 1 else "grad_output" for o in used]
    values: list[Any] = [leaf.tensor.detach().clone().requires_grad_() for leaf in leaves]
    values += [v[o].detach().clone().requires_grad_() for o in used]
    subject = Target(f"gradient of {target.name}", gradient, "callable", tuple(names))
    return subject, Arguments.of(values, names=names)


def _non_leaf(arguments: Arguments, replaced: dict[int, Tensor]) -> dict[int, Tensor]:
    """Tensors without a gradient are copied too: forward may write into a buffer."""
    others = {x.position: x.tensor.detach().clone() for x in arguments.leaves if x.position not in replaced}
    return {**others, **replaced}

"""The exact oracle: the user's own forward (or `reference=`), run under autograd with a stand-in ctx.

It applies wherever forward is made of differentiable torch ops. Where forward is opaque (no_grad, in-place, foreign
code, detach) its answer is missing or wrong; callers confirm it against directional differences before they use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.measure.memory import readable
from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import Run, counted, flat_outputs
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.copies import copied
from gradsmith.lab.subject.target import Target, has_setup_context


class StandInContext:
    """Takes whatever forward does with ctx, and keeps none of it."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None: ...

    def mark_dirty(self, *tensors: Tensor) -> None: ...

    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...


def plain_forward(target: Target) -> Callable[..., Any] | None:
    """The forward of a Function as an ordinary callable, if the target is a Function."""
    cls = target.function
    if cls is None:
        return None
    forward = cls.forward
    if has_setup_context(cls):
        return forward

    def call(*args: Any) -> Any:
        needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        return forward(StandInContext(needs), *args)

    return call


class OwnForward:
    """Gradients of `function` by autograd, comparable with those of a `Run` on the same arguments."""

    def __init__(self, function: Callable[..., Any], arguments: Arguments, seed: int) -> None:
        given = copied(arguments)
        self.leaves = given.leaves
        seed_all(seed)
        with counted(), torch.enable_grad():
            self.outputs, _ = flat_outputs(function(*given.args, **given.kwargs))
        for tensor in (*given.passed.values(), *self.outputs):
            readable(tensor, "a tensor")  # the graph holds it

    def gradients(self, output: int, grad_output: Tensor) -> dict[int, Tensor]:
        positions = list(self.leaves)
        if not self.outputs[output].requires_grad:
            return {p: torch.zeros_like(self.leaves[p]) for p in positions}
        grads = gradients(
            [self.outputs[output]],
            [self.leaves[p] for p in positions],
            [grad_output.to(self.outputs[output].dtype)],
            retain_graph=True,
        )
        return {p: g if g is not None else torch.zeros_like(self.leaves[p]) for p, g in zip(positions, grads)}


def own_forward(target: Target, run: Run, seed: int, reference: Callable[..., Any] | None) -> OwnForward | None:
    """The oracle for this run, or None where it does not apply."""
    function = reference or plain_forward(target)
    if function is None:
        return None
    try:
        oracle = OwnForward(function, run.arguments, seed)
        # In-place forwards, and operations without a derivative, show themselves only on the way back.
        for output in run.differentiable if reference is None else ():
            if output < len(oracle.outputs):
                oracle.gradients(output, torch.ones_like(oracle.outputs[output]))
    except Exception:  # the user's code, in a mode it was not written for: any error means "opaque"
        return None
    same = len(oracle.outputs) == len(run.outputs) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(oracle.outputs, run.outputs)
    )
    return oracle if same else None

"""Sides that no backward takes, whatever the inputs: autograd fills in missing gradients, and runs backward only if asked to.

`if grad_output is None` is false as long as the Function does not turn that off. `ctx.needs_input_grad[0]` is true in every
backward of a Function with one input that can require a gradient, and false for an argument that is no floating tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection

import torch
from torch import Tensor

from gradsmith.lab.explore.coverage.bytecode import Jump
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.subject.copies import copied
from gradsmith.lab.subject.target import backward_of
from gradsmith.source.loaded import model_of
from gradsmith.source.needed import gradient_asked_for


@once
def _arguments(lab: Lab) -> tuple[object, ...]:
    return tuple(copied(lab.precise[1]).args)


@once
def _filled_in(lab: Lab) -> frozenset[str]:
    """The parameters of backward that are never None: all gradients, if all that forward returns are floating tensors."""
    cls = lab.target.function
    model = model_of(cls) if cls is not None else None
    if cls is None or model is None or not model.materializes:
        return frozenset()
    names = list(inspect.signature(inspect.unwrap(backward_of(cls))).parameters)[1:]
    outputs = lab.precise_run().outputs
    return frozenset(names) if len(names) == len(outputs) else frozenset()


def untakable(lab: Lab, jump: Jump) -> Collection[str]:
    """The sides of a condition in the subject's own backward that cannot be taken."""
    if jump.what in _filled_in(lab) and any(side == "None" for _, side in jump.sides):
        return {"None"}
    asked = gradient_asked_for(jump.what)
    if asked is None or lab.target.function is None:
        return ()
    given = _arguments(lab)
    if asked == "any":
        return {"false"}
    if not isinstance(asked, int) or not -len(given) <= asked < len(given):
        return ()
    if not _may_require_grad(given[asked]) and given[asked] is not None:
        return {"true"}
    return {"false"} if sum(_may_require_grad(value) or value is None for value in given) == 1 else ()


def _may_require_grad(value: object) -> bool:
    return isinstance(value, Tensor) and (torch.is_floating_point(value) or torch.is_complex(value))

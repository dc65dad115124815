"""Inputs that only backward reads: an inverse permutation, a Jacobian. They follow from the other inputs, and an example
in which they do not fit proves nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsmith.lab.run import Run, forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target


def implied(target: Target, arguments: Arguments, seed: int) -> list[int]:
    """Positions of the tensors without a gradient, or with none but zeros, on which backward depends, and forward does not."""
    before = forward(target, arguments, seed=seed)
    silent = _silent(before)
    plain = [leaf for leaf in arguments.leaves if leaf.tensor.numel() > 1 and leaf.position in silent]
    found = []
    for leaf in plain:
        try:
            others = [arguments.replaced({leaf.position: t}) for t in _changed(leaf.tensor.detach())]
            runs = [forward(target, other, seed=seed) for other in others]
        except Exception:  # forward looks at it closely enough to reject other values
            continue
        unread = runs and all(_equal(before.outputs, after.outputs) for after in runs)
        matters = unread and any(_answers(before) != _answers(after) for after in runs)
        if matters and not _read_elsewhere(target, arguments, leaf.position, seed):
            found.append(leaf.position)
    return found


def _read_elsewhere(target: Target, arguments: Arguments, position: int, seed: int) -> bool:
    """Does forward depend on it where the other inputs have other values? `x @ w` does not show `x` where `w` is zero."""
    floats = [x for x in arguments.leaves if x.position != position and x.tensor.is_floating_point()]
    others = {x.position: changed[-1] for x in floats if (changed := _changed(x.tensor.detach()))}  # inf stays inf
    if not others:
        return False
    moved = arguments.replaced(others)
    own = next(leaf.tensor.detach() for leaf in arguments.leaves if leaf.position == position)
    try:
        before = forward(target, moved, seed=seed)
        after = [forward(target, moved.replaced({position: t}), seed=seed) for t in _changed(own)]
    except Exception:  # the others may not have such values
        return False
    return any(not _equal(before.outputs, run.outputs) for run in after)


def _silent(run: Run) -> set[int]:
    """Those that backward has nothing to say of."""
    positions = {leaf.position for leaf in run.arguments.leaves if not leaf.differentiable}
    if not run.differentiable:
        return positions
    try:
        grads = run.gradients(run.normal(torch.Generator().manual_seed(0)))
    except Exception:  # what it would have said is not known
        return positions
    return positions | {i for i, g in grads.items() if g is not None and not bool(g.detach().any())}


def _answers(run: Run) -> list[list[float]] | None:
    """What backward says to one and the same grad_output; None where it raises."""
    try:
        grads = run.gradients(run.normal(torch.Generator().manual_seed(0)))
    except Exception:  # a value that does not fit is a difference, too
        return None
    return [g.detach().abs().flatten().tolist() for g in grads.values() if g is not None]


def _changed(tensor: Tensor) -> list[Tensor]:
    """Other values of the same kind: none an index could not have."""
    if tensor.dtype == torch.bool:
        candidates = [~tensor]
    elif tensor.is_floating_point() or tensor.is_complex():
        # Not only all alike: a sum over weights of ones, divided by their number, does not show what is done to all.
        uneven = torch.linspace(0.4, 1.6, tensor.numel(), device=tensor.device).reshape(tensor.shape)
        candidates = [tensor + 1, tensor * 1.5 + 0.25, tensor + uneven.to(tensor.dtype)]
    else:
        candidates = [tensor.flip(-1), tensor.roll(1, -1), tensor.flatten()[:1].expand_as(tensor).clone()]
    return [t for t in candidates if not torch.equal(t, tensor)]


def _equal(a: list[Tensor], b: list[Tensor]) -> bool:
    return len(a) == len(b) and all(x.shape == y.shape and torch.equal(x, y) for x, y in zip(a, b))

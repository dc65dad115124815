"""Parameters that forward uses without being given them: inside module arguments, globals and closures."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward


def untrained(lab: Lab) -> Iterator[str]:
    """Names of the hidden parameters that change the output and yet have no gradient after backward."""
    if lab.target.function is None:
        return
    # Also those that are given once more in a flat tensor, which is how their gradient gets out.
    given = {id(t) for leaf in lab.arguments.leaves for t in (leaf.tensor, *(held.tensor for held in leaf.held))}
    for name, parameter in _candidates(lab):
        if id(parameter) in given or not parameter.requires_grad or not parameter.is_floating_point():
            continue
        if _moves_output(lab, parameter) and not _gets_gradient(lab, parameter):
            yield name


def _candidates(lab: Lab) -> Iterator[tuple[str, Tensor]]:
    assert lab.target.function is not None
    held: dict[str, object] = {f"argument {i}": v for i, v in enumerate(lab.arguments.flat)}
    try:
        found = inspect.getclosurevars(inspect.unwrap(lab.target.function.forward))
        held.update({**found.globals, **found.nonlocals})
    except TypeError:
        pass
    names = lab.target.names
    for key, value in held.items():
        if isinstance(value, nn.Module):
            position = key.removeprefix("argument ")
            index = int(position) if position.isdigit() else -1
            owner = names[index] if 0 <= index < len(names) else key
            for name, parameter in value.named_parameters():
                yield f"{owner}.{name}", parameter
        elif isinstance(value, Tensor) and not key.startswith("argument "):
            yield key, value


def _moves_output(lab: Lab, parameter: Tensor) -> bool:
    before = forward(lab.target, lab.arguments, seed=lab.settings.seed, plain=True).outputs
    kept = parameter.detach().clone()
    with torch.no_grad():
        parameter.add_(0.25)
        try:
            after = forward(lab.target, lab.arguments, seed=lab.settings.seed, plain=True).outputs
        finally:
            parameter.copy_(kept)
    return any(a.shape == b.shape and not torch.equal(a, b) for a, b in zip(before, after))


def _gets_gradient(lab: Lab, parameter: Tensor) -> bool:
    run = forward(lab.target, lab.arguments, seed=lab.settings.seed)
    kept, parameter.grad = parameter.grad, None
    try:
        roots = [run.outputs[o] for o in run.differentiable]
        torch.autograd.backward(roots, [torch.ones_like(r) for r in roots])
        return parameter.grad is not None and bool(parameter.grad.abs().gt(0).any())
    finally:
        parameter.grad = kept

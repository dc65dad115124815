"""From what a user passes to what the lab runs: keywords into positions, parameters of modules among the inputs."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradsmith.findings import GradsmithError
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target, has_setup_context

# The keyword under which `train()` and `eval()` are chosen: no parameter of forward can be called so.
TRAINING = "train()"
Example = tuple[tuple[Any, ...], dict[str, Any]]


def bound(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Target, Arguments]:
    """The subject and its arguments as the lab wants them."""
    if target.function is not None and kwargs:
        args, kwargs = positional(target, args, kwargs), {}
    if target.module is None:
        return target, Arguments.of(args, kwargs, target.names)
    parameters = dict(target.module.named_parameters())
    return functional(target), Arguments.of((parameters, *args), kwargs, ("parameters", *target.names))


def moved_to(example: Example, device: torch.device | None) -> Example:
    """The example with its tensors and modules on another device."""
    if device is None:
        return example

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(device).requires_grad_(value.requires_grad)
        return value.to(device) if isinstance(value, torch.nn.Module) else value

    moved: Example = pytree.tree_map(move, example)
    return moved


def unusable(arguments: Arguments) -> str:
    """Why these inputs prove nothing, in words; empty where they may."""
    for leaf in arguments.leaves:
        if leaf.tensor.layout is not torch.strided:
            return f"'{leaf.name}' is sparse ({leaf.tensor.layout}); gradsmith judges dense gradients only"
    if not arguments.differentiable:
        return "none of the inputs requires grad; pass floating tensors with requires_grad=True"
    for leaf in arguments.differentiable:
        if leaf.tensor.numel() and bool(leaf.tensor.detach().isnan().any()):
            return f"'{leaf.name}' contains NaN"
    if not any(leaf.tensor.numel() for leaf in arguments.differentiable):
        return "every input that requires grad is empty"
    return ""


def positional(target: Target, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """`Function.apply` takes no keywords: put them where forward's signature has them, with its defaults."""
    assert target.function is not None
    forward: Callable[..., Any] = target.function.forward
    ctx = () if has_setup_context(target.function) else (None,)
    try:
        filled = inspect.signature(forward).bind(*ctx, *args, **kwargs)
    except TypeError as error:
        raise GradsmithError(f"these inputs do not fit {target.name}.forward: {error}") from None
    filled.apply_defaults()
    return tuple(filled.args[len(ctx) :])


def functional(target: Target) -> Target:
    """A module as a function of its parameters, which are inputs like any other."""
    module = target.module
    assert module is not None

    twins: dict[bool, torch.nn.Module] = {}

    def call(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        wanted: bool | None = kwargs.pop(TRAINING, None)
        if wanted is None:
            return torch.func.functional_call(module, parameters, args, kwargs)
        # Never switched for the time of the call: a checkpoint runs forward again in backward, and needs the same mode.
        if wanted != module.training and wanted not in twins:
            twins[wanted] = other_mode(module)
        chosen = module if wanted == module.training else twins[wanted]
        buffers = {name: buffer.clone() for name, buffer in chosen.named_buffers()}  # training writes to them
        return torch.func.functional_call(chosen, {**buffers, **parameters}, args, kwargs)

    return replace(target, call=call)


def other_mode(module: torch.nn.Module) -> torch.nn.Module:
    """A copy after `train()` or `eval()`, whichever it is not; its parameters are the same tensors."""
    kept: dict[int, Any] = {id(parameter): parameter for parameter in module.parameters()}
    return copy.deepcopy(module, kept).train(not module.training)

"""What backward says of a guess that forward let pass: a parameter that is one number, or a Function for float32.

Forward takes a step size of the shape of the data as readily as a single number; backward, which sums its gradient up,
knows better. And what is made with `torch.ones(n)` is float32, so that only float32 gets through backward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils import _pytree as pytree

from gradsmith.inputs.guess import Guess
from gradsmith.lab.explore.watching import guard
from gradsmith.lab.measure.memory import whole
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.state import preserved
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.code import as_code
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import has_memory


def refitted(target: Target, found: Guess, seed: int) -> Guess:
    """The guess with other shapes or digits where backward runs on those alone; else the guess as it was."""
    if found.args is None or target.function is None:
        return found
    args = found.args
    with preserved():
        for _ in range(len(args) + 1):
            trouble = _trouble(target, args, found.kwargs, seed)
            if not trouble:
                break
            other = _smaller(args, trouble) or _single(args, trouble)
            if other is None:
                return found
            args = other
        else:
            return found
    if args is found.args:
        return found
    return replace(found, args=args, code=as_code(Arguments.of(args, found.kwargs, target.names)))


def restoring(call: Callable[..., Any]) -> Callable[..., Any]:
    """The subject, tried out on a guess: a forward that writes into its input, or frees it, may not leave its marks there.

    Where they stay, and writing a second time changes nothing (`x -= x.max()`), nobody sees the write any more.
    """

    def restored(*args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled():
            return call(*args, **kwargs)
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if type(t) in (Tensor, Parameter)]
        sizes = [t.untyped_storage().nbytes() if has_memory(t) else 0 for t in tensors]
        before = [(t, t._version, t.detach().clone(), size) for t, size in zip(tensors, sizes)]
        try:
            return call(*args, **kwargs)
        finally:
            for tensor, version, value, size in before:
                if not whole(tensor):
                    tensor.untyped_storage().resize_(size)
                elif tensor._version == version:
                    continue
                tensor.detach().copy_(value)

    return restored


def _trouble(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> str:
    """What backward complains about."""
    try:
        with guard():
            run = forward(target, Arguments.of(args, kwargs, target.names), seed=seed)
            run.gradients(run.normal(torch.Generator().manual_seed(seed)))
    except Exception as error:  # the user's code, on values that nobody promised it
        return str(error) or type(error).__name__
    return ""


def _smaller(args: tuple[Any, ...], trouble: str) -> tuple[Any, ...] | None:
    """The input in question in the shape of its gradient, if it was only guessed to be as large as another one.

    Or to have as many elements, in other dimensions: a forward that reshapes its inputs takes a key of (12, 4) beside a query
    of (2, 2, 3, 4).
    """
    place, shape = torch_says.gradient_of_shape(trouble) or (len(args), [])
    if place >= len(args):
        return None
    guessed = args[place]
    if not isinstance(guessed, Tensor) or not guessed.is_floating_point():
        return None
    count = int(torch.tensor(shape).prod()) if shape else 1
    others = [a.shape for a in args if isinstance(a, Tensor) and a is not guessed]
    smaller = guessed.shape in others and count < guessed.numel()
    reshaped = torch.Size(shape) in others and count == guessed.numel()
    if not smaller and not reshaped:
        return None
    part = guessed.detach().reshape(-1)[:count].reshape(shape).clone().requires_grad_(guessed.requires_grad)
    return tuple(part if i == place else a for i, a in enumerate(args))


def _single(args: tuple[Any, ...], trouble: str) -> tuple[Any, ...] | None:
    """All of them in float32."""

    def narrowed(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype != torch.float64:
            return value
        return value.detach().float().requires_grad_(value.requires_grad)

    narrow = tuple(pytree.tree_map(narrowed, args)) if torch_says.dtypes_differ(trouble) else args
    return narrow if any(a is not b for a, b in zip(narrow, args)) else None

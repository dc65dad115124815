"""Inputs as code a user can paste: into a declaration, or into a script that shows the defect without gradsmith."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.lab.subject.arguments import Arguments

_SMALL = 48  # more elements than this are drawn, not listed


def as_code(arguments: Arguments) -> str:
    """The arguments as one Python tuple.

    >>> as_code(Arguments.of((torch.zeros(2, requires_grad=True), 1)))
    '(torch.tensor([0.0, 0.0], requires_grad=True), 1)'
    """
    flat = [_Code(value_code(v)) for v in arguments.flat]
    args, kwargs = pytree.tree_unflatten(flat, arguments.spec)
    if kwargs:
        return f"dict({', '.join(f'{k}={v!r}' for k, v in kwargs.items())})"
    return repr(tuple(args))


def sayable(arguments: Arguments) -> bool:
    """Whether code can say the arguments: tensors, numbers, words and nestings of them."""
    said = (Tensor, bool, int, float, complex, str, torch.dtype, torch.device, type(None))
    return all(isinstance(value, said) for value in arguments.flat)


def value_code(value: Any) -> str:
    if isinstance(value, Tensor):
        return tensor_code(value)
    if isinstance(value, torch.Size):
        return f"torch.Size({list(value)})"
    return repr(value)


def tensor_code(tensor: Tensor) -> str:
    grad = ", requires_grad=True" if tensor.requires_grad else ""
    plain = tensor.detach()
    dtype = "" if plain.dtype in (torch.float32, torch.int64, torch.bool) else f", dtype={plain.dtype}"
    shape = ", ".join(map(str, plain.shape))
    if plain.numel() <= _SMALL and plain.layout == torch.strided:
        empty = plain.numel() == 0 or plain.dtype in (torch.bfloat16, torch.float16)
        listed = plain.float().tolist() if empty and plain.numel() else plain.tolist()
        wanted = f", dtype={plain.dtype}" if plain.numel() == 0 else dtype
        made = f"torch.tensor({_numbers(listed)}{wanted}{grad})"
        return made if plain.numel() else f"torch.empty({shape}{wanted}{grad})"
    if plain.is_floating_point() or plain.is_complex():
        return f"torch.randn({shape}{dtype}{grad})"
    if plain.dtype == torch.bool:
        return f"torch.rand({shape}) > 0.5"
    low, high = int(plain.min()), int(plain.max()) + 1
    return f"torch.randint({low}, {high}, ({shape},){dtype})"


def _numbers(listed: Any) -> str:
    return repr(listed).replace("inf", "float('inf')").replace("nan", "float('nan')")


class _Code(str):
    """Text whose repr is itself, so that containers of it print as code."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def exact_code(arguments: Arguments) -> str:
    """`(args, kwargs)` as code, every tensor with its very values where it has no more than a few thousand.

    A tensor that is passed twice stays one tensor.
    """
    grad = {leaf.position for leaf in arguments.differentiable}
    places: dict[int, list[int]] = {}
    for i, value in enumerate(arguments.flat):
        places.setdefault(id(value), []).append(i)
    flat = []
    for i, value in enumerate(arguments.flat):
        if not isinstance(value, Tensor):
            flat.append(_Code(value_code(value)))
            continue
        first, *others = places[id(value)]
        made = _exact(value, i in grad) if i == first else f"same{first}"
        flat.append(_Code(f"(same{first} := {made})" if others and i == first else made))
    args, kwargs = pytree.tree_unflatten(flat, arguments.spec)
    return f"({tuple(args)!r}, {kwargs!r})"


def _exact(tensor: Tensor, grad: bool) -> str:
    plain = tensor.detach()
    if plain.numel() > _MOST or not plain.numel() or plain.layout != torch.strided:
        return tensor_code(plain.clone().requires_grad_(grad))
    wide = plain.double() if plain.dtype in (torch.bfloat16, torch.float16) else plain
    return f"torch.tensor({_numbers(wide.tolist())}, dtype={plain.dtype}{', requires_grad=True' if grad else ''})"


_MOST = 5000

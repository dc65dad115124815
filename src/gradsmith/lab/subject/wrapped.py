"""Tensor subclasses that wrap plain tensors: inputs are made of plain ones, outputs are taken apart into plain ones.

A masked or nested tensor cannot be moved along a direction, and often not even be copied. Its parts can. So an
input is declared as `wrapped(MaskedTensor, data, mask)`: gradients are asked for the parts, and the subclass is put
together in every call. Of an output, the gradient flows through its parts; what backward receives is of its own class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.lab.process import torch_says


@dataclass(frozen=True)
class Wrapped:
    """What an argument is made of: `make(*parts)`."""

    make: Callable[..., Any]
    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"gs.wrapped({', '.join([getattr(self.make, '__name__', repr(self.make)), *map(repr, self.parts)])})"


def wrapped(make: Callable[..., Any], *parts: Any) -> Any:
    """An input that is made of plain tensors, whose gradients are checked: `gs.wrapped(MaskedTensor, data, mask)`.

    >>> class Tagged(torch.Tensor):
    ...     pass
    >>> wrapped(Tagged, torch.ones(2))
    gs.wrapped(Tagged, tensor([1., 1.]))
    """
    return Wrapped(make, parts)


def put_together(args: Any) -> Any:
    """The same arguments, in which everything wrapped is what it stands for."""
    return pytree.tree_map(lambda value: value, args)


def holds_wrapped(spec: pytree.TreeSpec) -> bool:
    """Whether arguments of this nesting have something wrapped among them."""
    return spec.type is Wrapped or any(holds_wrapped(child) for child in torch_says.children_of(spec))


def _put_together(parts: Iterable[Any], make: Callable[..., Any]) -> Any:
    """The argument itself; where the parts are no tensors but what stands for them (code), a description of it."""
    flat, spec = pytree.tree_flatten(tuple(parts))
    tensors = [p for p in flat if isinstance(p, Tensor)]
    if not tensors:
        return Wrapped(make, pytree.tree_unflatten(flat, spec))
    if any(t.requires_grad for t in tensors) and torch.is_grad_enabled():
        return _Together.apply(make, spec, *flat)
    with torch.no_grad():
        return make(*pytree.tree_unflatten([p.detach() if isinstance(p, Tensor) else p for p in flat], spec))


pytree.register_pytree_node(
    Wrapped,
    lambda value: (list(value.parts), value.make),
    _put_together,
    flatten_with_keys_fn=lambda value: ([(pytree.SequenceKey(i), p) for i, p in enumerate(value.parts)], value.make),
)


class _Together(torch.autograd.Function):
    """The parts as one tensor of the subclass; a gradient of it is taken apart again."""

    @staticmethod
    def forward(ctx: Any, make: Callable[..., Any], spec: pytree.TreeSpec, *flat: Any) -> Any:
        ctx.numbers = [_has_numbers(p) for p in flat]
        return make(*pytree.tree_unflatten([p.detach() if isinstance(p, Tensor) else p for p in flat], spec))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        found = [g.detach() for g in values_of(grads[0])]
        if len(found) != sum(ctx.numbers):
            raise RuntimeError(f"backward returns a gradient of {len(found)} parts for an input of {sum(ctx.numbers)}")
        remaining = iter(found)
        return (None, None, *(next(remaining) if numbers else None for numbers in ctx.numbers))


def _has_numbers(value: object) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def is_wrapper(tensor: object) -> bool:
    """Whether a tensor has no numbers of its own, only tensors inside; a subclass that merely has attributes is none.

    Nor is one whose content is integers (quantised, packed): no gradient flows through those.
    """
    if not isinstance(tensor, Tensor) or type(tensor) in (Tensor, nn.Parameter, nn.Buffer) or has_memory(tensor):
        return False
    content = [part for part in _inside(tensor).values() if part.dtype != torch.bool]
    return bool(content) and _has_numbers(max(content, key=lambda part: part.numel()))


def has_memory(tensor: Tensor) -> bool:
    """Whether a tensor holds numbers of its own; a subclass that only wraps others holds none."""
    try:
        with torch._C.DisableTorchFunctionSubclass():
            Tensor.untyped_storage(tensor).data_ptr()
    except RuntimeError:  # "invalid python storage": made by `_make_wrapper_subclass`
        return False
    return True


def values_of(tensor: Tensor) -> list[Tensor]:
    """The plain dense tensors of numbers that a tensor consists of: itself, if it is one."""
    if not is_wrapper(tensor):
        return [tensor if tensor.layout == torch.strided else tensor.to_dense()]
    parts = [v for part in _inside(tensor).values() for v in values_of(part)]
    numbers = [v for v in parts if _has_numbers(v)]
    masks = [v for v in parts if v.dtype == torch.bool]
    # A mask beside the numbers says which of them count.
    return [v * m if len(masks) == 1 and v.shape == m.shape else v for v in numbers for m in masks[:1] or [v]]


def plain_gradient(grad: Tensor | None) -> Tensor | None:
    """A gradient that is of a subclass, for an input that is not, as numbers; anything else as it is."""
    if grad is None or not is_wrapper(grad):
        return grad
    found = values_of(grad)
    return found[0].detach() if len(found) == 1 else grad


def taken_apart(tensor: Tensor) -> list[Tensor]:
    """The same with a graph: what backward is given has the class of `tensor`."""
    if not is_wrapper(tensor):
        return [tensor]
    if not (tensor.requires_grad and torch.is_grad_enabled()):
        with torch.no_grad():
            return [v.detach() for v in values_of(tensor)]
    found = _Apart.apply(tensor)
    return list(found)


class _Apart(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Any:
        ctx.tensor = tensor.detach()
        return tuple(v.detach().clone() for v in values_of(tensor))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _like(ctx.tensor, iter(grads))


def _inside(tensor: Tensor) -> dict[str, Tensor]:
    """The tensors inside: as the class itself says for the compiler, else those among its attributes."""
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        return {name: getattr(tensor, name) for name in flatten()[0]}
    return {name: value for name, value in vars(tensor).items() if isinstance(value, Tensor)}


def _like(tensor: Tensor, values: Iterator[Tensor]) -> Tensor:
    """A tensor of the same class and layout with other numbers."""
    if not is_wrapper(tensor):
        if not _has_numbers(tensor):
            return tensor
        value = next(values)
        return value if tensor.layout == torch.strided else value.sparse_mask(tensor)
    inner = {name: _like(part, values) for name, part in _inside(tensor).items()}
    kind: Any = type(tensor)
    if hasattr(tensor, "__tensor_flatten__"):
        return cast(
            Tensor, kind.__tensor_unflatten__(inner, tensor.__tensor_flatten__()[1], tensor.shape, _stride(tensor))
        )
    return cast(Tensor, kind(*inner.values()))


def _stride(tensor: Tensor) -> tuple[int, ...] | None:
    try:
        return tensor.stride()
    except (RuntimeError, TypeError):  # a layout that has none
        return None

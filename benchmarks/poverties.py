"""Ways to make declared inputs poor: what people write who want the test to pass, or who do not think of the other case.

A poverty takes the arguments of a call and returns poorer ones, or None where it changes nothing. Used by impoverished.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Args = tuple[Any, ...]
Value = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Poverty:
    """A name for the table, a longer one for the list of misses, and the change."""

    name: str
    make: Callable[[Args], Args | None]
    where: str = "all"

    def __str__(self) -> str:
        return self.name if self.where == "all" else f"{self.name} {self.where}"


def values() -> dict[str, Value]:
    """Poor values of one floating point tensor; where one does not apply, the tensor comes back unchanged."""
    return {
        "ones": torch.ones_like,
        "zeros": torch.zeros_like,
        "positive": lambda t: t.abs() + 0.1 if not t.is_complex() else t,
        "constant rows": lambda t: t[..., :1].expand(t.shape).clone() if t.ndim else t,
        "equal rows": lambda t: t[:1].expand(t.shape).clone() if t.ndim > 1 else t,
        "symmetric": lambda t: t + t.mT if _is_square(t) else t,
        "identity": lambda t: torch.eye(t.shape[-1], dtype=t.dtype).expand(t.shape).clone() if _is_square(t) else t,
        "real": lambda t: t.real.to(t.dtype) if t.is_complex() else t,
    }


def of_values(args: Args, *, one_by_one: bool = True) -> Iterator[Poverty]:
    """Poor values in all tensors at once, then in each alone."""
    floats = [i for i, a in enumerate(args) if _is_float(a)]
    for name, value in values().items():
        yield Poverty(name, lambda args, value=value: _mapped(args, floats, value))  # type: ignore[misc]
        if one_by_one and len(floats) > 1:
            for i in floats:
                make = lambda args, value=value, i=i: _mapped(args, [i], value)  # noqa: E731
                yield Poverty(name, make, f"in argument {i}")


def of_structure(args: Args, forward: Callable[..., Any], takes_ctx: bool) -> Iterator[Poverty]:
    """Poor sizes, masks, ids, options, and fewer gradients asked for."""
    sizes = sorted({size for a in args if isinstance(a, Tensor) for size in a.shape} - {0, 1})
    yield Poverty("square", lambda args: _resized(args, dict.fromkeys(sizes, 3)) if sizes not in ([], [3]) else None)
    for size in sizes:
        yield Poverty("batch 1", lambda args, size=size: _resized(args, {size: 1}), f"for size {size}")  # type: ignore[misc]
    yield Poverty("one element", lambda args: _resized(args, dict.fromkeys(sizes, 1)) if sizes else None)
    yield Poverty("all-True masks", lambda args: _if_kind(args, lambda t: t.dtype == torch.bool, torch.ones_like))
    yield Poverty("sorted unique ids", lambda args: _if_kind(args, _is_ids, _counted))
    yield Poverty("default options", lambda args: _defaults(args, forward, takes_ctx))
    yield Poverty("neutral options", _neutral)
    wanting = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    for i in wanting if len(wanting) > 1 else ():
        only = lambda args, i=i: _asking(args, i)  # noqa: E731
        yield Poverty("one gradient asked for", only, f"of argument {i}")


def applied(poverties: Sequence[Poverty], args: Args) -> Args | None:
    """The arguments after one poverty after the other; None if one of them changes nothing."""
    for poverty in poverties:
        poorer = poverty.make(args)
        if poorer is None or _same(poorer, args):
            return None
        args = poorer
    return args


def copied(args: Args) -> Args:
    return tuple(_keeping(a, a.detach().clone()) if isinstance(a, Tensor) else a for a in args)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _is_square(t: Tensor) -> bool:
    return t.ndim >= 2 and t.shape[-1] == t.shape[-2] and t.shape[-1] > 1


def _is_ids(t: Tensor) -> bool:
    return t.dtype in (torch.int64, torch.int32)


def _counted(t: Tensor) -> Tensor:
    return torch.arange(t.numel(), dtype=t.dtype).remainder(int(t.max()) + 1).sort().values.view(t.shape)


def _keeping(old: Tensor, new: Tensor) -> Tensor:
    return new.detach().clone().requires_grad_(old.requires_grad)


def _mapped(args: Args, chosen: Sequence[int], value: Value) -> Args:
    return tuple(
        _keeping(a, value(a.detach())) if i in chosen and isinstance(a, Tensor) else a for i, a in enumerate(args)
    )


def _if_kind(args: Args, kind: Callable[[Tensor], bool], value: Value) -> Args:
    return tuple(_keeping(a, value(a)) if isinstance(a, Tensor) and kind(a) else a for a in args)


def _resized(args: Args, sizes: dict[int, int]) -> Args:
    """Every dimension of an old size in every tensor gets the new one: equal sizes belong together, as far as one sees."""

    def of(t: Tensor) -> Tensor:
        shape = [sizes.get(size, size) for size in t.shape]
        if list(t.shape) == shape:
            return t
        if all(new <= old for new, old in zip(shape, t.shape)):
            return _keeping(t, t[tuple(slice(0, size) for size in shape)])
        if not _is_float(t):
            return _keeping(t, t.flatten()[torch.arange(torch.Size(shape).numel()) % t.numel()].view(shape))
        drawn = torch.randn(shape, dtype=t.dtype)
        return _keeping(t, drawn.abs() if not t.is_complex() and bool((t >= 0).all()) else drawn)

    return tuple(of(a) if isinstance(a, Tensor) else a for a in args)


def _defaults(args: Args, forward: Callable[..., Any], takes_ctx: bool) -> Args:
    """What forward's signature gives as default, False for a bool, None for a tensor that may be None."""
    parameters = list(inspect.signature(forward).parameters.values())[int(takes_ctx) :]

    def of(value: Any, parameter: inspect.Parameter | None) -> Any:
        if parameter is None or parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return value
        if parameter.default is not inspect.Parameter.empty:
            return parameter.default
        if isinstance(value, Tensor) and "None" in str(parameter.annotation):
            return None
        return False if isinstance(value, bool) else value

    return tuple(of(a, parameters[i] if i < len(parameters) else None) for i, a in enumerate(args))


def _neutral(args: Args) -> Args:
    """1 for every whole number, 1.0 for every other: the options that change least."""
    return tuple(type(a)(1) if type(a) in (int, float) else a for a in args)


def _asking(args: Args, index: int) -> Args:
    return tuple(a.detach().requires_grad_(i == index) if isinstance(a, Tensor) else a for i, a in enumerate(args))


def _same(a: Args, b: Args) -> bool:
    def one(x: Any, y: Any) -> bool:
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            return type(x) is type(y) and bool(x == y)
        return x.shape == y.shape and x.requires_grad == y.requires_grad and torch.equal(x, y)

    return all(one(x, y) for x, y in zip(a, b))

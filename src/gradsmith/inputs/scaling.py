"""Large inputs made smaller for checking: every size by one rule, so that what fitted together still does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from gradsmith.lab.subject.binding import Example

FULL = 1 << 22  # elements of one call that are copied as they are
CHECKED = 1 << 16  # elements of one call that are checked as they are


def elements(args: tuple[Any, ...]) -> int:
    return sum(v.numel() for v in pytree.tree_leaves(list(args)) if isinstance(v, Tensor))


def scaled(args: tuple[Any, ...], wanted: int = CHECKED) -> tuple[tuple[Any, ...], str]:
    """The arguments cut down to about `wanted` elements, and how: `'sizes 4096 to 48, 1000 to 40'`.

    Equal sizes stay equal and different ones different, multiples of 8 stay multiples of 8.
    """
    tensors = [v for v in pytree.tree_leaves(list(args)) if isinstance(v, Tensor)]
    sizes = sorted({n for t in tensors for n in t.shape})
    for limit in (256, 128, 64, 48, 32, 24, 16, 8, 4):
        smaller = _mapping(sizes, limit)
        if sum(_product([smaller[n] for n in t.shape]) for t in tensors) <= wanted:
            break
    changed = {n: m for n, m in smaller.items() if n != m}
    if not changed:
        return args, ""

    def cut(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        index = tuple(slice(0, smaller[n]) for n in value.shape)
        return value.detach()[index].requires_grad_(value.requires_grad)

    words = ", ".join(f"{n} to {m}" for n, m in changed.items())
    return pytree.tree_map(cut, args), f"sizes {words}"


def first_parts(example: Example, wanted: int = CHECKED) -> tuple[Example, str]:
    """Copies of the first parts of the tensors, about `wanted` elements in all, and how: `'sizes 1000000 to 488'`.

    The largest size is halved, and then what is the largest, so that small ones stay whole: the classes of a row that sums to
    1 are among those. What a power of two up to 64 divides, it divides afterwards.
    """
    tensors = [v for v in pytree.tree_leaves(list(example)) if isinstance(v, Tensor)]
    smaller = {n: n for t in tensors for n in t.shape}
    while sum(_product([smaller[n] for n in t.shape]) for t in tensors) > wanted:
        n = max(smaller, key=lambda n: smaller[n])
        step = math.gcd(n, 64)
        if (half := max(step, smaller[n] // 2 // step * step)) == smaller[n]:
            break
        smaller[n] = half
    made: dict[int, Tensor] = {}

    def part(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if id(value) not in made:
            index = tuple(slice(0, smaller[n]) for n in value.shape)
            made[id(value)] = value.detach()[index].clone().requires_grad_(value.requires_grad)
        return made[id(value)]

    words = ", ".join(f"{n} to {m}" for n, m in smaller.items() if n != m)
    parts: Example = pytree.tree_map(part, example)
    return parts, f"sizes {words}" if words else ""


def _mapping(sizes: list[int], limit: int) -> dict[int, int]:
    mapped: dict[int, int] = {n: n for n in sizes if n <= limit}
    step = 8 if limit >= 32 else 1
    for n in (n for n in sizes if n > limit):
        m = limit
        while m in mapped.values() and m > step:
            m -= step
        mapped[n] = m
    return mapped


def _product(shape: list[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total

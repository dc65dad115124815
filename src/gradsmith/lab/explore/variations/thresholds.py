"""Values on the other side of the bounds that forward compares an input with: a branch no example element reaches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gradsmith.lab.explore.tape import OperationTape, Seen
from gradsmith.lab.explore.variations.judging import Variation
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Leaf

# Where their bounds stand among the arguments of aten's operations; those of the others are always the same.
_BOUNDS = {
    "clamp": (1, 2), "clamp_min": (1,), "clamp_max": (1,), "hardtanh": (1, 2), "threshold": (1,),
    "gt": (1,), "ge": (1,), "lt": (1,), "le": (1,), "softplus": (2,),
}  # fmt: skip
_FIXED = {"hardsigmoid": (-3.0, 3.0), "hardswish": (-3.0, 3.0), "relu6": (0.0, 6.0), "relu": (0.0,)}
# Below: an epsilon against division by 0. Above: a guard against overflow (`exp(x.clamp(max=15))` in many a renderer), whose
# author may want the slope to go on.
_SMALLEST, _LARGEST = 1e-2, 10.0
_MOST = 4
_EXACT = 1e-6  # of the largest value; what is no straight line is off by more


@dataclass(frozen=True)
class Bound:
    """An input whose elements all lie on one side of a number that forward compares them with."""

    leaf: Leaf
    value: float


def bounds(tape: OperationTape, leaves: Iterable[Leaf]) -> list[Bound]:
    """The numbers with which forward compares an input, or `a * input + b`, element by element."""
    found: dict[tuple[int, float], Bound] = {}
    watched = [leaf for leaf in leaves if leaf.tensor.is_floating_point()]
    for op in tape.aten({*_BOUNDS, *_FIXED}):
        numbers = _FIXED.get(op.name) or [_number(op.args[i]) for i in _BOUNDS[op.name] if i < len(op.args)]
        numbers = [*numbers, *(_number(op.kwargs.get(name)) for name in ("min", "max"))]
        for leaf, line in _lines(op.args[0], watched):
            for number in numbers:
                bound = None if number is None else line.back(number)
                if bound is not None and _is_unreached(leaf.tensor.detach(), bound):
                    found[leaf.position, bound] = Bound(leaf, bound)
    return list(found.values())


def _lines(seen: Any, leaves: list[Leaf]) -> Iterator[tuple[Leaf, _Line]]:
    values = seen.values if isinstance(seen, Seen) and seen.dtype.is_floating_point else None
    if values is None or not values.numel():
        return
    for leaf in leaves:
        if leaf.tensor.shape == values.shape and (line := _line(leaf.tensor.detach(), values)):
            yield leaf, line


class _Line(NamedTuple):
    """What is compared is `slope * input + shift`."""

    slope: float
    shift: float

    def back(self, number: float) -> float | None:
        """The bound of the input itself; None where the number is too small or too large to be about values."""
        if abs(number) > _LARGEST or 0 < abs(number) < _SMALLEST:
            return None
        return float(f"{(number - self.shift) / self.slope:.6g}")


def _line(x: Tensor, y: Tensor) -> _Line | None:
    """The line through the points, if they lie on one."""
    if torch.equal(x, y):
        return _Line(1.0, 0.0)
    a, b = x.reshape(-1).double(), y.reshape(-1).double()
    low, high = int(a.argmin()), int(a.argmax())
    width = float(a[high] - a[low])
    if a.numel() < 3 or not 0 < width < math.inf:
        return None
    slope = float(b[high] - b[low]) / width
    shift = float(b[low]) - slope * float(a[low])
    off = float((slope * a + shift - b).abs().max())
    return _Line(slope, shift) if slope and off <= _EXACT * float(b.abs().max()) else None


def _number(value: Any) -> float | None:
    if isinstance(value, Seen):
        value = value.values.item() if value.values is not None and value.values.numel() == 1 else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_unreached(x: Tensor, bound: float) -> bool:
    if not _SMALLEST <= abs(bound) <= _LARGEST:
        return False
    if bool((x >= 0).all()) and bool((x <= 1).all()) and 0.9 <= bound <= 1.1:
        return False  # probabilities: beyond 1 there is nothing to be right about
    return bool((x < bound).all()) or bool((x > bound).all())


def variations(lab: Lab) -> Iterator[Variation]:
    arguments = lab.precise[1]
    for bound in bounds(lab.tape, arguments.differentiable)[:_MOST]:
        x = bound.leaf.tensor.detach()
        below = bool((x < bound.value).all())
        beyond = torch.rand(x.shape, generator=lab.generator(13), dtype=torch.float64).to(x) * 0.5 + 0.1
        other = bound.value + beyond * max(abs(bound.value), 1.0) * (1.0 if below else -1.0)
        every_other = torch.arange(x.numel(), device=x.device).reshape(x.shape) % 2 == 0
        both_signs = bool((x < 0).any()) and bool((x > 0).any())
        yield Variation(
            f"with '{bound.leaf.name}' {'above' if below else 'below'} {bound.value:g}, where forward takes another branch",
            arguments.replaced({bound.leaf.position: torch.where(every_other, other, x)}),
            "thresholds",
            bound.leaf.name,
            doubtful=not both_signs,
        )

"""Values on the other side of the bounds that forward compares an input with: a branch no example element reaches."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradsmith.lab.arguments import Leaf
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward
from gradsmith.lab.variations.judging import Variation

_aten = torch.ops.aten
_BOUNDS = {
    _aten.clamp: (1, 2), _aten.clamp_: (1, 2), _aten.clamp_min: (1,), _aten.clamp_max: (1,), _aten.hardtanh: (1, 2),
    _aten.threshold: (1,), _aten.gt: (1,), _aten.ge: (1,), _aten.lt: (1,), _aten.le: (1,), _aten.softplus: (2,),
}  # fmt: skip
_FIXED = {
    _aten.hardsigmoid: (-3.0, 3.0), _aten.hardswish: (-3.0, 3.0), _aten.relu6: (0.0, 6.0), _aten.relu: (0.0,), _aten.relu_: (0.0,),
}  # fmt: skip
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


class _Comparisons(TorchDispatchMode):
    """The numbers with which forward compares an input, or `a * input + b`, element by element."""

    def __init__(self, leaves: list[Leaf]) -> None:
        super().__init__()
        self.leaves = leaves
        self.found: dict[tuple[int, float], Bound] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = func.overloadpacket
        if packet in _BOUNDS or packet in _FIXED:
            numbers = _FIXED.get(packet) or [_number(args[i]) for i in _BOUNDS[packet] if i < len(args)]
            self._note(args[0], [*numbers, *(_number((kwargs or {}).get(name)) for name in ("min", "max"))])
        return func(*args, **(kwargs or {}))

    def _note(self, compared: Any, numbers: list[float | None]) -> None:
        if not isinstance(compared, Tensor) or not compared.is_floating_point() or not compared.numel():
            return
        for leaf in self.leaves:
            line = _line(leaf.tensor.detach(), compared.detach()) if leaf.tensor.shape == compared.shape else None
            if line is None:
                continue
            for number in numbers:
                bound = None if number is None else line.back(number)
                if bound is not None and _is_unreached(leaf.tensor.detach(), bound):
                    self.found[leaf.position, bound] = Bound(leaf, bound)


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
    if isinstance(value, Tensor):
        value = value.item() if value.numel() == 1 else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_unreached(x: Tensor, bound: float) -> bool:
    if not _SMALLEST <= abs(bound) <= _LARGEST:
        return False
    if bool((x >= 0).all()) and bool((x <= 1).all()) and 0.9 <= bound <= 1.1:
        return False  # probabilities: beyond 1 there is nothing to be right about
    return bool((x < bound).all()) or bool((x > bound).all())


def variations(lab: Lab) -> Iterator[Variation]:
    target, arguments = lab.precise
    seen = _Comparisons([leaf for leaf in arguments.differentiable if leaf.tensor.is_floating_point()])
    with seen, contextlib.suppress(Exception):  # user code under a mode it was not asked about
        forward(target, arguments, seed=lab.settings.seed)
    for bound in list(seen.found.values())[:_MOST]:
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

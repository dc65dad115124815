"""How much of a gradient is rounding, blown up inside backward: where numbers cancel, another order of a sum shows."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gradsmith.lab.lab import Lab

_SHAKES = (
    1 + 2.0**-18,
    1 + 2.0**-7,
)  # so that one who computes in float32 rounds differently, beside large numbers, too
_MARGIN = 30.0


def rounding_in(lab: Lab, v: Mapping[int, Tensor]) -> dict[int, float]:
    """By position of the input: how far backward is from linear when grad_output changes a little.

    A backward that rounds to 1e-7 on its way, and divides by what cancels, is off by 1e-3 in its result; in another layout of the
    same numbers it rounds differently, and that is no defect of the layout.
    """
    plain = lab.gradients(dict(v))
    found: dict[int, float] = {}
    for shake in _SHAKES:
        shaken = lab.gradients({o: g * shake for o, g in v.items()})
        for i, grad in plain.items():
            other = shaken.get(i)
            if grad is not None and other is not None:
                found[i] = max(found.get(i, 0.0), _largest(other / shake - grad))
    return found


def within_rounding(a: Tensor | None, b: Tensor | None, rounding: float) -> bool:
    """Whether two gradients differ by no more than this rounding, with a margin."""
    if a is None or b is None or a.shape != b.shape or not a.numel():
        return False
    return _largest(a - b) <= _MARGIN * rounding


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().nan_to_num(float("inf")).max()) if tensor.numel() else 0.0

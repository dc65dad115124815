"""The table of domains: kinds of values that a Function may take for granted in an input.

A domain says whether a tensor lies in it, puts a tensor into it, and how likely a tensor drawn at random would lie in it by
accident. Guesses draw from it, moves break it on purpose, a gradient that is wrong outside only is an assumption with its
words. A new special case is a row of `rows`. `drawing.py` asks which domains a tensor lies in, and draws from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

_EXACT = 1e-5  # float32 sums are off by a little


@dataclass(frozen=True)
class Domain:
    """`words` complete "'x' ...": "has rows that sum to 1". `special_of` are the domains that it lies in."""

    name: str
    words: str
    contains: Callable[[Tensor], bool]
    project: Callable[[Tensor], Tensor]
    chance: Callable[[Tensor], float] = field(default=lambda x: 0.0)
    special_of: tuple[str, ...] = ()
    tells: Callable[[Tensor], bool] = field(default=lambda x: True)  # False where `contains` sees too little to say so


DISCRETE = ("binary", "signs", "whole")
WITHOUT_GRADIENT = ("binary", "one-hot", "signs", "whole")


def rows(ndim: int) -> Iterator[Domain]:
    """All rows for a tensor of this rank, the most special first."""
    if ndim > 1:
        yield from _MATRICES
    for dim in range(-1, -ndim - 1, -1):
        yield from _along(dim)
    yield from ELEMENTS
    yield from _ORDERS


def _square(x: Tensor) -> bool:
    return x.ndim > 1 and x.shape[-1] == x.shape[-2] > 1 and not _constant(x)


def _several(x: Tensor) -> bool:
    """A matrix of one element is symmetric, diagonal and what not: nothing follows from it."""
    return min(x.shape[-2:]) > 1 and not _constant(x)


def _constant(x: Tensor) -> bool:
    return bool((x == x.reshape(-1)[0]).all())


def _eye(x: Tensor) -> Tensor:
    return torch.eye(x.shape[-2], x.shape[-1], dtype=x.dtype, device=x.device)


def _size(x: Tensor) -> float:
    return float(x.abs().max()) or 1.0


def _near(a: Tensor, b: Tensor | float, x: Tensor) -> bool:
    return bool(((a - b).abs() <= _EXACT * _size(x)).all())


def _is_symmetric(x: Tensor) -> bool:
    return _square(x) and _near(x, x.mT, x)


def _is_definite(x: Tensor) -> bool:
    return _is_symmetric(x) and bool((torch.linalg.eigvalsh(x) > 0).all())


def _is_triangular(x: Tensor, lower: bool) -> bool:
    if x.ndim < 2 or min(x.shape[-2:]) < 2 or _constant(x):
        return False
    return torch.equal(x, x.tril() if lower else x.triu())


def _is_orthogonal(x: Tensor) -> bool:
    return _square(x) and _near(x @ x.mT, _eye(x), x)


def _definite(x: Tensor) -> Tensor:
    if x.shape[-1] != x.shape[-2]:
        return x
    n = x.shape[-1]
    return (x @ x.mT) / (n * _size(x)) + 0.5 * _size(x) * _eye(x)


def _symmetrised(x: Tensor) -> Tensor:
    return (x + x.mT) / 2 if x.shape[-1] == x.shape[-2] else x


def _antisymmetrised(x: Tensor) -> Tensor:
    return (x - x.mT) / 2 if x.shape[-1] == x.shape[-2] else x


def _orthogonalised(x: Tensor) -> Tensor:
    return torch.linalg.qr(x)[0] if x.shape[-1] == x.shape[-2] else x


_MATRICES = (
    Domain(
        "diagonal",
        "is a diagonal matrix",
        lambda x: _square(x) and torch.equal(x, x * _eye(x)),
        lambda x: x * _eye(x),
        special_of=("symmetric", "lower triangular", "upper triangular"),
        tells=_several,
    ),
    Domain(
        "definite",
        "is symmetric and positive definite",
        _is_definite,
        _definite,
        special_of=("symmetric",),
        tells=_several,
    ),
    Domain("symmetric", "is symmetric", _is_symmetric, _symmetrised, tells=_several),
    Domain(
        "antisymmetric",
        "is antisymmetric",
        lambda x: _square(x) and _near(x, -x.mT, x),
        _antisymmetrised,
        tells=_several,
    ),
    Domain("lower triangular", "is lower triangular", lambda x: _is_triangular(x, True), torch.tril, tells=_several),
    Domain("upper triangular", "is upper triangular", lambda x: _is_triangular(x, False), torch.triu, tells=_several),
    Domain("orthogonal", "is an orthogonal matrix", _is_orthogonal, _orthogonalised, tells=_several),
)


def _along(dim: int) -> Iterator[Domain]:
    """What rows may have in common, taken along this dimension."""
    where = "has rows" if dim == -1 else f"has slices along dim {dim}"

    def several(x: Tensor) -> bool:
        return x.shape[dim] > 1

    def distribution(x: Tensor) -> Tensor:
        positive = x.abs() + 1e-3 * _size(x)
        return positive / positive.sum(dim, keepdim=True)

    def unit(x: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(x, dim=dim, keepdim=True)
        return x / length.clamp(min=1e-12)

    def inside(x: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(x, dim=dim, keepdim=True)
        return x * (0.9 * length.tanh() / length.clamp(min=1e-12))

    yield Domain(
        f"one-hot {dim}",
        f"{where} with a single 1 and zeros elsewhere",
        lambda x: several(x) and bool(((x == 0) | (x == 1)).all()) and bool((x.sum(dim) == 1).all()),
        lambda x: torch.zeros_like(x).scatter_(dim, x.argmax(dim, keepdim=True), 1.0),
        special_of=("binary", f"probability {dim}"),
    )
    yield Domain(
        f"probability {dim}",
        f"{where} that sum to 1",
        lambda x: several(x) and bool((x >= 0).all()) and _near(x.sum(dim), 1.0, x),
        distribution,
        special_of=("unit interval", "not negative", f"sums to one {dim}"),
    )
    yield Domain(
        f"sums to one {dim}",
        f"{where} that sum to 1",
        lambda x: several(x) and _near(x.sum(dim), 1.0, x),
        lambda x: x + (1 - x.sum(dim, keepdim=True)) / x.shape[dim],
    )
    yield Domain(
        f"log-probability {dim}",
        f"{where} of logarithms of probabilities that sum to 1",
        lambda x: several(x) and _near(x.logsumexp(dim), 0.0, torch.ones(1)),
        lambda x: x.log_softmax(dim),
        special_of=("negative",),
    )
    yield Domain(
        f"unit length {dim}",
        f"{where} of length 1",
        lambda x: several(x) and _near(x.norm(dim=dim), 1.0, torch.ones(1)),
        unit,
        special_of=(f"ball {dim}",),
    )
    yield Domain(
        f"zero mean {dim}",
        f"{where} with mean 0",
        lambda x: several(x) and not _constant(x) and _near(x.mean(dim), 0.0, x),
        lambda x: x - x.mean(dim, keepdim=True),
    )
    yield Domain(
        f"ball {dim}",
        f"{where} shorter than 1",
        lambda x: several(x) and bool((x.norm(dim=dim) <= 1 + _EXACT).all()),
        inside,
        _matter_of_scale,
    )


def _matter_of_scale(x: Tensor) -> float:
    """Small numbers are no structure: an example may be small, and the next one not."""
    return 1.0


def _by_sign(x: Tensor) -> float:
    return float(0.5 ** x.numel())


def _folded(x: Tensor) -> Tensor:
    """Into the unit interval, by reflection, away from its ends."""
    t = x.remainder(2.0)
    return torch.where(t > 1, 2 - t, t) * 0.96 + 0.02


def _away_from_zero(x: Tensor) -> Tensor:
    return x.abs().clamp(min=0.05 * _size(x))


ELEMENTS = (
    Domain(
        "binary",
        "holds zeros and ones",
        lambda x: bool(((x == 0) | (x == 1)).all()),
        lambda x: (x > x.median()).double(),
        special_of=("unit interval", "not negative", "whole"),
    ),
    Domain(
        "signs",
        "holds 1 and -1",
        lambda x: bool((x.abs() == 1).all()),
        lambda x: torch.where(x > x.median(), 1.0, -1.0),
    ),
    Domain("whole", "holds whole numbers", lambda x: torch.equal(x, x.round()), torch.round),
    Domain(
        "unit interval",
        "lies between 0 and 1",
        lambda x: bool(((x >= 0) & (x <= 1)).all()),
        _folded,
        _by_sign,
        special_of=("not negative",),
    ),
    Domain("positive", "is positive", lambda x: bool((x > 0).all()), _away_from_zero, _by_sign, ("not negative",)),
    Domain("not negative", "is not negative", lambda x: bool((x >= 0).all()), torch.abs, _by_sign),
    Domain(
        "within one",
        "lies between -1 and 1",
        lambda x: bool((x.abs() <= 1).all()),
        lambda x: 2 * _folded(x) - 1,
        _matter_of_scale,
    ),
    Domain("above one", "is above 1", lambda x: bool((x > 1).all()), lambda x: 1.1 + _folded(x), _matter_of_scale),
    Domain("negative", "is negative", lambda x: bool((x < 0).all()), lambda x: -_away_from_zero(x), _by_sign),
)


def _ascending(x: Tensor) -> bool:
    return bool((x.diff(dim=-1) >= 0).all()) and not bool((x.diff(dim=-1) == 0).all()) if x.shape[-1] > 1 else False


def _in_order_by_chance(x: Tensor) -> float:
    return float(math.exp(-math.lgamma(x.shape[-1] + 1) * (x.numel() // x.shape[-1])))


def _halves(x: Tensor) -> bool:
    n = x.shape[-1]
    return n > 2 and n % 2 == 0 and not _constant(x) and torch.equal(x[..., : n // 2], x[..., n // 2 :])


def _halved(x: Tensor) -> Tensor:
    n = x.shape[-1]
    return torch.cat([x[..., : n // 2]] * 2, -1) if n % 2 == 0 else x


def _mirrored(x: Tensor) -> bool:
    return x.shape[-1] > 2 and torch.equal(x, x.flip(-1)) and not bool((x.diff(dim=-1) == 0).all())


def _alike(x: Tensor) -> bool:
    return x.shape[0] > 1 and x.ndim > 1 and not _constant(x) and bool((x == x[:1]).all())


_ORDERS = (
    Domain("sorted", "is sorted", _ascending, lambda x: x.sort(-1).values, _in_order_by_chance),
    Domain(
        "sorted down",
        "is sorted in descending order",
        lambda x: _ascending(-x),
        lambda x: x.sort(-1, descending=True).values,
        _in_order_by_chance,
    ),
    Domain("equal halves", "has two equal halves", _halves, _halved),
    Domain("mirrored", "reads the same in both directions", _mirrored, lambda x: (x + x.flip(-1)) / 2),
    Domain("equal rows", "has equal rows", _alike, lambda x: x[:1].expand(x.shape).clone()),
)

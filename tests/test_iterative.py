"""The Functions of benchmarks/iterative are right, or wrong, by plain PyTorch: without a word of gradsmith."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from iterative import WRONG, files, function_of

STEP = 1e-5


def off(path: Path) -> float:
    """By how much backward is off the central difference, at most, in three directions of each input that asks for it."""
    function, build = function_of(path)
    torch.manual_seed(0)
    args = build()
    worst = 0.0
    for index, leaf in enumerate(args):
        if not isinstance(leaf, Tensor) or not leaf.requires_grad:
            continue
        for seed in range(3):
            draw = torch.Generator().manual_seed(seed)
            direction = torch.randn(leaf.shape, dtype=leaf.dtype, generator=draw)
            along = [moved(function, args, index, STEP * sign * direction) for sign in (1, -1)]
            v = [torch.randn(o.shape, dtype=o.dtype, generator=draw) for o in along[0]]
            numeric = sum(float(((a - b) * w).sum()) for a, b, w in zip(*along, v)) / (2 * STEP)
            outputs = called(function, args)
            (grad,) = torch.autograd.grad(outputs, leaf, v)
            analytic = float((grad * direction).sum())
            worst = max(worst, abs(analytic - numeric) / max(abs(analytic), abs(numeric), 1e-3 * float(grad.norm())))
    return worst


def moved(function: Any, args: tuple[Any, ...], index: int, by: Tensor) -> tuple[Tensor, ...]:
    with torch.no_grad():
        return called(function, [a + by if i == index else a for i, a in enumerate(args)])


def called(function: Any, args: Any) -> tuple[Tensor, ...]:
    outputs = function.apply(*args)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def test_there_are_twelve_and_four_of_them_are_wrong() -> None:
    assert len(files()) == 12
    assert len(WRONG) == 4
    assert set(WRONG) <= {path.stem for path in files()}


@pytest.mark.deep
@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_difference_quotient_agrees_with_what_the_benchmark_says_of_it(path: Path) -> None:
    if path.stem in WRONG:
        assert off(path) > 1e-2
    else:
        assert off(path) < 1e-4

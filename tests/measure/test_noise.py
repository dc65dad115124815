"""The noise of forward is measured for what it is: neither read into a smooth function, nor overlooked in a rough one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from smooth_functions import Smooth, smooth
from torch import Tensor

from gradsmith.lab.measure.noise import relative_noise

ROUNDED = 500  # units in the last place: three layers, each a few of them
TENFOLD = 10  # seven points are few: the estimate of a standard deviation from four differences varies that much


def noise_of(function: Smooth, call: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float64) -> float:
    """As the lab asks for it: along steps of a few units in the last place."""
    x = function.point(dtype)
    u = function.draw(202, dtype, function.shape) * function.size
    v = function.draw(303, dtype, tuple(function(x).shape))
    return relative_noise(lambda k: [call(x + 8 * torch.finfo(dtype).eps * k * u)], {0: v})


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(function=smooth(steepest=0))
@settings(max_examples=40)
def test_a_smooth_function_has_the_noise_of_its_rounding(function: Smooth, dtype: torch.dtype) -> None:
    y = function(function.point(dtype))
    assume(float(y.abs().max()) > 1e-6 * function.outer)  # what cancels has nothing but rounding
    assert noise_of(function, function, dtype) < ROUNDED * torch.finfo(dtype).eps


@given(smooth(steepest=0), st.floats(-10, -2).map(lambda p: 10.0**p))
@settings(max_examples=40)
def test_noise_is_found_in_its_size(function: Smooth, level: float) -> None:
    drawn = torch.Generator().manual_seed(function.seed)
    assume(bool(function(function.point(torch.float64)).any()))

    def call(x: Tensor) -> Tensor:
        y = function(x)
        return y * (1 + level * torch.randn(y.shape, dtype=y.dtype, generator=drawn))

    assert level / TENFOLD < noise_of(function, call) < level * TENFOLD

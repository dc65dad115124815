"""What is made of the measurements: one element is named if it is wrong, and nothing is accused that is right or unclear."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from smooth_functions import DTYPES, Smooth, function_of, functions, smooth, subject, truth
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import Pair, Settings, judge
from gradsmith.lab.measure.oracle import own_forward
from gradsmith.lab.measure.second_order import second_order


def judged(function: type[torch.autograd.Function], x: Tensor) -> Pair:
    (pair,) = judge(*subject(function, x), Settings()).pairs
    return pair


def _has_gradient(function: Smooth, dtype: torch.dtype = torch.float64) -> None:
    """Not only what exact cancellation leaves; and no numbers whose squares are infinite."""
    x = function.point(dtype)
    gradient = truth(function, x, function.draw(7, dtype, tuple(function(x).shape)))
    assume(1e-6 * function.outer < float((gradient * x).abs().max()) < 1e30)


def _right(function: Smooth, opaque: bool, dtype: torch.dtype) -> None:
    _has_gradient(function, dtype)
    pair = judged(function_of(function, opaque=opaque), function.point(dtype))
    assert pair.status in ("right", "noisy")
    assert pair.status == "right" or opaque or function.frequency > 100


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data(), opaque=st.booleans())
@settings(max_examples=12)
def test_a_right_gradient_is_never_accused(dtype: str, data: st.DataObject, opaque: bool) -> None:
    _right(data.draw(functions(dtype, 3)), opaque, DTYPES[dtype])


@pytest.mark.deep
@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data(), opaque=st.booleans())
@settings(max_examples=1_000)
def test_a_right_gradient_is_never_accused_deep(dtype: str, data: st.DataObject, opaque: bool) -> None:
    _right(data.draw(functions(dtype, 3)), opaque, DTYPES[dtype])


def _corrupted(function: Smooth, opaque: bool, index: int, factor: float, dtype: torch.dtype = torch.float64) -> None:
    _has_gradient(function, dtype)
    x = function.point(dtype)
    element = tuple(int(i) for i in torch.unravel_index(torch.tensor(index % x.numel()), x.shape))

    def spoil(gradient: Tensor) -> Tensor:
        wrong = gradient.clone()
        own = gradient[element]
        wrong[element] = own * factor + gradient.abs().max() * 0.1 * (own.sgn() if own != 0 else 1)
        return wrong

    pair = judged(function_of(function, spoil=spoil, opaque=opaque), x)
    assert pair.status == "wrong"
    assert pair.mismatch is not None and pair.mismatch.element == element
    true = truth(function, x, pair.v)
    size = float(true.abs().max())
    if dtype == torch.float64:
        assert pair.mismatch.true == pytest.approx(float(true[element]), rel=1e-4, abs=1e-4 * size)
        assert pair.mismatch.claimed == pytest.approx(float(spoil(true)[element]), rel=1e-9, abs=1e-9 * size)


FACTORS = st.sampled_from((-1.0, 0.0, 0.5, 0.99, 1.5, 2.0, 10.0))


@given(smooth(steepest=0), st.booleans(), st.integers(0, 5), FACTORS)
@settings(max_examples=20)
def test_the_one_wrong_element_is_named_with_both_numbers(
    function: Smooth, opaque: bool, index: int, factor: float
) -> None:
    _corrupted(function, opaque, index, factor)


@pytest.mark.deep
@given(smooth(steepest=0), st.booleans(), st.integers(0, 5), FACTORS)
@settings(max_examples=2_000)
def test_the_one_wrong_element_is_named_with_both_numbers_deep(
    function: Smooth, opaque: bool, index: int, factor: float
) -> None:
    _corrupted(function, opaque, index, factor)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@given(data=st.data(), opaque=st.booleans(), index=st.integers(0, 11), factor=FACTORS)
@settings(max_examples=12)
def test_so_it_is_in_other_types(dtype: str, data: st.DataObject, opaque: bool, index: int, factor: float) -> None:
    _corrupted(data.draw(functions(dtype, 0)), opaque, index, factor, DTYPES[dtype])


@pytest.mark.parametrize("size", [1e1, 1e3, 1e5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("opaque", [False, True])
def test_the_sine_of_large_numbers_is_not_accused(size: float, dtype: torch.dtype, opaque: bool) -> None:
    x = torch.tensor([0.66, 0.27, -0.06, 0.62], dtype=dtype) * size
    assert judged(function_of(torch.sin, opaque=opaque), x).status != "wrong"


@pytest.mark.parametrize("size", [1e1, 1e3, 1e5, 1e7])
def test_a_wrong_gradient_of_a_steep_function_is_not_taken_for_a_corner(size: float) -> None:
    x = torch.tensor([0.66, 0.27, -0.06, 0.62], dtype=torch.float64) * size
    assert judged(function_of(torch.sin, spoil=lambda g: g * 1.5), x).status != "right"


def _in_float32(function: Smooth) -> type[torch.autograd.Function]:
    return function_of(lambda x: function(x.float()).double(), derivative_of=function, opaque=True)


@given(smooth(steepest=0))
@settings(max_examples=12)
def test_a_forward_that_computes_in_float32_is_not_accused(function: Smooth) -> None:
    _has_gradient(function)
    assert judged(_in_float32(function), function.point(torch.float64)).status in ("right", "noisy")


def _with_noise(function: Smooth, level: float, spoil: Any) -> Pair:
    _has_gradient(function)
    x = function.point(torch.float64)
    slope = float((truth(function, x, torch.ones_like(function(x))) * x).abs().max())
    assume(slope > 1e-2 * function.outer)

    def noisy(x: Tensor) -> Tensor:
        y = function(x)
        seed = int(torch.frexp(x.abs().sum()).mantissa.item() * 2**52) % 2**31
        return y + level * slope * torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(seed))

    return judged(function_of(noisy, derivative_of=function, spoil=spoil, opaque=True), x)


@given(smooth(steepest=0), st.sampled_from((0.03, 0.1, 1.0)))
@settings(max_examples=8)
def test_noise_wider_than_a_hundredth_is_neither_right_nor_wrong(function: Smooth, level: float) -> None:
    pair = _with_noise(function, level, lambda gradient: gradient)
    assert pair.status == "noisy"


@given(smooth(steepest=0), st.sampled_from((0.1, 1.0)))
@settings(max_examples=5)
def test_a_wrong_gradient_under_wide_noise_is_never_right(function: Smooth, level: float) -> None:
    assert _with_noise(function, level, lambda gradient: gradient * 1.5).status != "right"


CORNERS = {
    "relu": (torch.relu, 0.0, (0.0, 1.0)),
    "abs": (torch.abs, 0.0, (-1.0, 1.0)),
    "leaky": (lambda x: torch.where(x > 0, x, 0.2 * x), 0.0, (0.2, 1.0)),
    "clamp": (lambda x: x.clamp(max=0.5), 0.5, (0.0, 1.0)),
}


@pytest.mark.parametrize("name", CORNERS)
@given(st.floats(0, 1), st.sampled_from((-0.3, 1.3)), st.integers(0, 10**6), st.integers(0, 4))
@settings(max_examples=8)
def test_at_a_corner_anything_between_the_slopes_is_right_and_anything_else_wrong(
    name: str, between: float, beyond: float, seed: int, index: int
) -> None:
    function, place, (low, high) = CORNERS[name]
    x = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x = x + 0.3 * x.sign()
    x = torch.where((x - place).abs() < 0.1, x + 0.3, x)
    x[index] = place
    for share in (between, beyond):
        own = torch.tensor(low + share * (high - low), dtype=torch.float64)

        class Subject(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor) -> Tensor:
                ctx.save_for_backward(x)
                return function(x)

            @staticmethod
            def backward(ctx: Any, grad_output: Tensor, own: Tensor = own) -> Tensor:
                (x,) = ctx.saved_tensors
                step = 1e-6
                slope = (function(x + step) - function(x - step)) / (2 * step)
                return grad_output * torch.where(x == place, own, slope.round(decimals=6))

        pair = judged(Subject, x)
        if share is between:
            assert pair.status == "right"
        else:
            assert pair.status == "wrong" and pair.mismatch is not None and pair.mismatch.element == (index,)


@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(0, 1))
@settings(max_examples=10)
def test_a_tie_of_max_may_be_shared_as_one_likes(seed: int, count: int, share: float) -> None:
    x = torch.randn(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x[0] = x[1] = x.max() + 1

    class Largest(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.max()

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            gradient = torch.zeros_like(ctx.saved_tensors[0])
            gradient[0], gradient[1] = share, 1 - share
            return grad_output * gradient

    assert judged(Largest, x).status == "right"


SINGULAR = {
    "sqrt": lambda x: x.clamp(min=0).sqrt(),
    "root": lambda x: x.sign() * x.abs() ** 0.3,
    "log": lambda x: torch.log(x.abs()),
}


@pytest.mark.parametrize("name", SINGULAR)
@given(st.integers(0, 10**6), st.integers(3, 7), st.booleans())
@settings(max_examples=8)
def test_points_without_a_slope_are_left_out_and_the_others_judged(
    name: str, seed: int, count: int, right: bool
) -> None:
    function = SINGULAR[name]
    x = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) + 0.5
    x[seed % count] = 0.0 if name != "log" else 1e-12
    wrong = (seed + 1) % count

    def spoil(gradient: Tensor) -> Tensor:
        spoiled = torch.nan_to_num(gradient, 0.0, 0.0, 0.0)
        spoiled[seed % count] = 0.0
        if not right:
            spoiled[wrong] *= 1.5
        return spoiled

    pair = judged(function_of(function, spoil=spoil, opaque=True), x)
    if name == "log":  # a slope of 1e12, if one looks near enough: it may be measured, but never hides the others
        assert right or pair.status != "right"
        return
    assert pair.singular == [(seed % count,)]
    assert pair.status == ("right" if right else "wrong")
    assert right or (pair.mismatch is not None and pair.mismatch.element == (wrong,))


@given(smooth(steepest=0))
@settings(max_examples=15)
def test_the_users_own_forward_under_autograd_agrees_with_differences(function: Smooth) -> None:
    _has_gradient(function)
    target, arguments = subject(function_of(function), function.point(torch.float64))
    judgement = judge(target, arguments, Settings())
    oracle = own_forward(target, judgement.run, 0, None)
    assert oracle is not None and judgement.pairs[0].truth is not None
    torch.testing.assert_close(
        oracle.gradients(0, judgement.pairs[0].v)[0],
        truth(function, function.point(torch.float64), judgement.pairs[0].v),
    )


def _no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x.sin()


def _written_into(x: Tensor) -> Tensor:
    y = x.detach().clone()
    y.mul_(2).sin_()
    return y


LEAVES_THE_GRAPH = {
    "no_grad": _no_grad,
    "numpy": lambda x: torch.from_numpy(x.detach().numpy()).sin(),
    "detached, written into": _written_into,
    "data": lambda x: x.data.sin(),
}


@pytest.mark.parametrize("how", LEAVES_THE_GRAPH)
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_forward_that_leaves_the_graph_is_judged_by_differences(how: str, factor: float) -> None:
    """Autograd finds no gradient, or a part of it; neither clears a wrong gradient nor accuses a right one."""
    forward_, slope = LEAVES_THE_GRAPH[how], 2.0 if how.startswith("detached") else 1.0
    function = function_of(forward_, derivative_of=lambda x: torch.sin(slope * x), spoil=lambda g: g * factor)
    pair = judged(function, torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64))
    assert pair.status == ("right" if factor == 1 else "wrong")
    assert pair.truth is None


def test_a_part_of_forward_that_leaves_the_graph_does_not_pass_for_the_truth() -> None:
    function = function_of(lambda x: x * x.detach().sin(), derivative_of=lambda x: x * x.sin())
    pair = judged(function, torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64))
    assert pair.status == "right" and pair.truth is None
    same_mistake = judged(function_of(lambda x: x * x.detach().sin()), torch.tensor([0.3, -1.2], dtype=torch.float64))
    assert same_mistake.status == "wrong"


def _twice(function: Smooth, factor: float) -> type[torch.autograd.Function]:
    """backward is differentiable, and right; its own derivative is right where factor is 1."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return grad_output * factor

    class Subject(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                moved = Scaled.apply(x)
                return torch.func.vjp(function, moved)[1](grad_output)[0]

    return Subject


@pytest.mark.parametrize("factor", [1.0, 1.5])
@given(function=smooth(layers=("sin", "exp", "product", "polynomial"), steepest=0))
@settings(max_examples=8)
def test_second_derivatives_are_judged_like_first_ones(factor: float, function: Smooth) -> None:
    _has_gradient(function)
    target, arguments = subject(_twice(function, factor), function.point(torch.float64))
    lab = Lab(target, arguments, Settings())
    assert not lab.gradient.wrong
    found = second_order(lab)
    assert found.judgement is not None
    by_name = {p.leaf.name: p.status for p in found.judgement.pairs}
    if not by_name:  # a short look was enough, which only ever says that all is right
        assert factor == 1
        return
    assert by_name["grad_output"] in ("right", "noisy")
    assert by_name["x"] in (("right", "noisy") if factor == 1 else ("wrong", "noisy"))

"""What a failed demand of forward asks for: an assertion without a message is read again, with the values it had."""

from __future__ import annotations

import pytest
import torch

from gradsmith.inputs.guess import guess
from gradsmith.inputs.guess.asked import Asked, asked
from gradsmith.lab.subject.target import resolve

X = torch.zeros(3, 4)
TALL = torch.zeros(5, 4)


def _equal_shapes(x, y):
    assert x.shape == y.shape


def _first_sizes(x, y):
    if x.size(0) != y.shape[0]:
        raise ValueError("no numbers here")


def _rank(x, y):
    batch, rows, columns = x.shape
    return batch * rows * columns


def _multiple(x, y):
    assert x.shape[-1] % 3 == 0


def _kind(x, y):
    assert not torch.is_complex(x) and y.dtype == torch.int64


def _matched(x, y):
    match x.shape[-1]:
        case 2:
            return 1
        case _:
            raise ValueError("two")


def _by_a_helper(x, y):
    _must_be_whole(y)


def _must_be_whole(value):
    if value.is_complex() or value.dtype is not torch.int64:
        raise TypeError("wrong dtype")


def _called_again(x, y):
    assert torch.manual_seed(0) == y.shape  # nothing but sizes is computed a second time


@pytest.mark.parametrize(
    ("code", "wishes"),
    [
        (_equal_shapes, {Asked(0, "shape", (5, 4)), Asked(1, "shape", (3, 4))}),
        (_first_sizes, {Asked(0, "size", (0, 5)), Asked(1, "size", (0, 3))}),
        (_rank, {Asked(0, "rank", 3)}),
        (_multiple, {Asked(0, "size", (1, 3)), Asked(0, "size", (1, 6))}),
        (_kind, {Asked(1, "kind", "integer")}),
        (_matched, {Asked(0, "size", (1, 2))}),
        (_by_a_helper, {Asked(1, "kind", "integer")}),
        (_called_again, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_values_of_a_failed_comparison_say_what_would_have_been_right(code, wishes):
    with pytest.raises((AssertionError, ValueError, TypeError)) as caught:
        code(X, TALL)
    assert set(asked(caught.value, (X, TALL))) == wishes


class Gathered(torch.autograd.Function):
    """Asks for sizes that no table of usual shapes has, one after the other and without a word."""

    @staticmethod
    def forward(ctx, points, weights, shape):
        assert points.dim() == 4
        assert points.shape[-1] == 2
        assert weights.shape == (points.shape[0], points.shape[1])
        if len(shape) - 1 != points.shape[-1]:
            raise ValueError("shape and points do not fit each other")
        ctx.save_for_backward(points, weights)
        return (points * weights[..., None, None]).sum() * len(shape)

    @staticmethod
    def backward(ctx, grad_output):
        points, weights = ctx.saved_tensors
        return 3 * grad_output * weights[..., None, None].expand_as(points), 3 * grad_output * points.sum((2, 3)), None


def test_a_chain_of_demands_is_met():
    found = guess(resolve(Gathered))
    points, weights, shape = found.args
    assert weights.shape == points.shape[:2]
    assert (points.shape[-1], len(shape)) == (2, 3)

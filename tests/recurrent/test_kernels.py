"""The two scans with kernels of their own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradsmith.recurrent import linear_recurrence, selective_scan
from gradsmith.recurrent.linear_recurrence import _loop as recurrence_loop
from gradsmith.recurrent.selective_scan import _loop as selective_loop


def selective_inputs(
    steps: int, batch: int, width: int, states: int, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    shapes = [
        (steps, batch, width),
        (steps, batch, width),
        (width, states),
        (steps, batch, states),
        (steps, batch, states),
    ]
    tensors = [torch.randn(shape, dtype=dtype) for shape in [*shapes, (width,), (batch, width, states)]]
    tensors[1] = 0.5 * torch.rand_like(tensors[1])
    tensors[2] = -torch.rand_like(tensors[2])
    return [t.requires_grad_() for t in tensors]


class TestLinearRecurrence:
    @pytest.mark.parametrize("shape", [(1, 1), (5, 3, 2), (40, 300), (7, 2, 1, 5)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_values_and_gradients(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        a, b = torch.rand(shape, dtype=dtype, requires_grad=True), torch.randn(shape, dtype=dtype, requires_grad=True)
        h = torch.randn(shape[1:], dtype=dtype, requires_grad=True)
        ours, loop = linear_recurrence(a, b, h), recurrence_loop(a, b, h)
        torch.testing.assert_close(ours, loop)
        torch.testing.assert_close(
            torch.autograd.grad(ours.sin().sum(), [a, b, h]), torch.autograd.grad(loop.sin().sum(), [a, b, h])
        )

    def test_gradients_of_gradients(self) -> None:
        a, b, h = (torch.rand(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (4, 3), (3,)))
        assert torch.autograd.gradcheck(linear_recurrence, (a, b, h))
        assert torch.autograd.gradgradcheck(linear_recurrence, (a, b, h))

    def test_a_broadcasts(self) -> None:
        a, b = torch.rand(6, 1, 3, requires_grad=True), torch.randn(6, 4, 3)
        y = linear_recurrence(a, b)
        torch.testing.assert_close(y, recurrence_loop(a, b, torch.zeros(4, 3)))
        assert torch.autograd.grad(y.sum(), a)[0].shape == a.shape

    def test_low_precision_keeps_its_dtype(self) -> None:
        assert (
            linear_recurrence(torch.rand(5, 3, dtype=torch.bfloat16), torch.rand(5, 3, dtype=torch.bfloat16)).dtype
            == torch.bfloat16
        )

    def test_bad_input(self) -> None:
        with pytest.raises(ValueError, match="a has 3 time steps but b has 4"):
            linear_recurrence(torch.rand(3, 2), torch.rand(4, 2))
        with pytest.raises(ValueError, match="T must be at least 1"):
            linear_recurrence(torch.rand(0, 2), torch.rand(0, 2))
        with pytest.raises(ValueError, match="no time dimension"):
            linear_recurrence(torch.tensor(1.0), torch.tensor(1.0))
        with pytest.raises(ValueError, match=r"initial has shape \(3,\), expected \(2,\)"):
            linear_recurrence(torch.rand(4, 2), torch.rand(4, 2), torch.zeros(3))


class TestSelectiveScan:
    @pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (5, 2, 3, 4), (70, 3, 17, 16), (33, 2, 40, 5)])
    def test_values_and_gradients(self, sizes: tuple[int, int, int, int]) -> None:
        inputs = selective_inputs(*sizes)
        ours, loop = selective_scan(*inputs), selective_loop(*inputs)
        torch.testing.assert_close(ours, loop)
        got = torch.autograd.grad(ours[0].sin().sum() + ours[1].sum(), inputs)
        torch.testing.assert_close(got, torch.autograd.grad(loop[0].sin().sum() + loop[1].sum(), inputs))

    def test_float32_and_missing_skip(self) -> None:
        inputs = selective_inputs(40, 2, 8, 16, torch.float32)[:5]
        y, last = selective_scan(*inputs)
        want, want_last = selective_loop(*inputs, torch.zeros(8), torch.zeros(2, 8, 16))
        torch.testing.assert_close((y, last), (want, want_last), rtol=1e-4, atol=1e-5)

    def test_gradients_of_gradients(self) -> None:
        assert torch.autograd.gradgradcheck(selective_scan, selective_inputs(3, 1, 2, 2))

    def test_bad_input(self) -> None:
        inputs = selective_inputs(5, 2, 3, 4)
        with pytest.raises(ValueError, match=r"B has shape \(4, 2, 4\), expected \(5, 2, 4\)"):
            selective_scan(*inputs[:3], inputs[3][:4], inputs[4])
        with pytest.raises(ValueError, match="at least one step"):
            selective_scan(inputs[0][:0], *inputs[1:])

"""Layers that exist carry their weights over, slow cells say so once, low dtypes stay low, and Functions stay on C."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs
from gradsmith import ops
from gradsmith.recurrent import plan, scan

H = 8


class Own(nn.Module):
    """A tanh RNN, batch first, with a loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.hidden = nn.Linear(3, H), nn.Linear(H, H, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h, states = x.new_zeros(x.shape[0], H), []
        for t in range(x.shape[1]):
            h = torch.tanh(self.inner(x[:, t]) + self.hidden(h))
            states.append(h)
        return torch.stack(states, 1)


class Gate(nn.Module):
    hidden_size = H

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(3, H), nn.Linear(H, H)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.sigmoid(self.w(x) + self.u(h))
        return 2 * h, h


class LastOfGate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[1], H)
        for now in x.unbind(0):
            y, h = self.gate(now, h)
        return y


class TestWeightsCarryOver:
    @pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
    @pytest.mark.parametrize(
        "options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}, {"bias": False}]
    )
    def test_from_a_layer_of_torch_and_they_are_shared(self, kind: Any, options: Any) -> None:
        layer = kind(3, H, **options)
        ours, x = gs.Recurrent.from_module(layer), torch.randn(4, 6, 3)
        torch.testing.assert_close(ours(x)[0], layer(x)[0], rtol=1e-4, atol=1e-5)
        assert {id(p) for p in ours.parameters()} == {id(p) for p in layer.parameters()}

    def test_from_two_linears_in_a_loop(self) -> None:
        own, x = Own(), torch.randn(4, 6, 3)
        ours = gs.Recurrent.from_module(own, x)
        assert ours.batch_first and ours.cell.weight_hh is own.hidden.weight
        torch.testing.assert_close(ours(x)[0], own(x), rtol=1e-4, atol=1e-5)

    def test_from_a_module_that_runs_a_cell(self) -> None:
        own, x = LastOfGate(), torch.randn(6, 4, 3)
        ours = gs.Recurrent.from_module(own, x)
        assert ours.cell is own.gate
        torch.testing.assert_close(ours(x)[0][-1], own(x), rtol=1e-4, atol=1e-5)

    def test_a_readout_is_left_to_the_module(self) -> None:
        for own in (ReadOut(last=False), ReadOut(last=True)):
            x = torch.randn(4, 6, 3)
            ours = gs.Recurrent.from_module(own, x)
            y = ours(x)[0]
            assert ours.cell is own.cell
            torch.testing.assert_close(own.readout(y[:, -1] if own.last else y), own(x), rtol=1e-4, atol=1e-5)

    def test_the_first_of_two_cells_is_not_the_whole(self) -> None:
        with pytest.raises(ValueError, match="no part of TwoCells"):
            gs.Recurrent.from_module(TwoCells(), torch.randn(6, 4, 3))

    def test_what_has_no_cell_says_what_to_write(self) -> None:
        with pytest.raises(ValueError, match=r"forward\(x_t, state\)"):
            gs.Recurrent.from_module(nn.Sequential(nn.Linear(3, 3)), torch.randn(4, 6, 3))
        with pytest.raises(ValueError, match="proj_size=2"):
            gs.Recurrent.from_module(nn.LSTM(3, H, proj_size=2))


class ReadOut(nn.Module):
    def __init__(self, last: bool) -> None:
        super().__init__()
        self.cell, self.readout, self.last = nn.GRUCell(3, H), nn.Sequential(nn.Linear(H, 2), nn.ReLU()), last

    def forward(self, x: Tensor) -> Tensor:
        h, found = x.new_zeros(x.shape[0], H), []
        for now in x.unbind(1):
            h = self.cell(now, h)
            found.append(self.readout(h))
        return found[-1] if self.last else torch.stack(found, 1)


class TwoCells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.GRUCell(3, H), nn.GRUCell(H, H)

    def forward(self, x: Tensor) -> Tensor:
        low, high, found = x.new_zeros(x.shape[1], H), x.new_zeros(x.shape[1], H), []
        for now in x:
            low = self.low(now, low)
            high = self.high(low, high)
            found.append(high)
        return torch.stack(found)


class Drops(nn.Module):
    hidden_size = H

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = nn.functional.dropout(x + h, 0.5)
        return h, h


class TestToldOnce:
    def test_a_cell_that_runs_as_a_loop_says_why_once_at_the_users_line(self) -> None:
        layer, x = gs.Recurrent(Drops()), torch.randn(3, 2, H)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            layer(x)
            layer(x)
        (one,) = told
        assert str(one.message).startswith("Drops runs as a Python loop") and "random numbers" in str(one.message)
        assert one.filename == __file__

    def test_who_asks_for_the_loop_is_not_told(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gs.Recurrent(Drops(), backend="loop")(torch.randn(3, 2, H))


class TestLowDtypes:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_half_as_much_is_held_and_gradients_are_no_worse_than_the_loops(self, dtype: torch.dtype) -> None:
        cell = gs.recurrent.GRUCell(H, H)
        x, grad = torch.randn(20, 4, H), torch.randn(20, 4, H)
        wide = _gradients(cell, x, grad, "loop")
        held32 = _held(cell, x)
        cell = cell.to(dtype)
        ours, loop = (_gradients(cell, x.to(dtype), grad.to(dtype), backend) for backend in ("c", "loop"))
        assert _held(cell, x.to(dtype)) * 2 == held32
        assert ours[0].dtype is dtype
        for a, b, exact in zip(ours, loop, wide):
            assert (a.float() - exact).norm() <= 1.2 * (b.float() - exact).norm() + 1e-3 * exact.norm()


def _gradients(cell: nn.Module, x: Tensor, grad: Tensor, backend: str) -> list[Tensor]:
    x = x.detach().requires_grad_()
    y, _ = scan(cell, x, x.new_zeros(x.shape[1], H), backend=backend)
    return [y.detach(), *torch.autograd.grad(y, [x, *cell.parameters()], grad)]


def _held(cell: nn.Module, x: Tensor) -> int:
    found: dict[int, Tensor] = {}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: found.setdefault(t.data_ptr(), t), lambda t: t):
        scan(cell, x.detach().requires_grad_(), x.new_zeros(x.shape[1], H))
    return sum(
        t.untyped_storage().nbytes() for t in {t.untyped_storage().data_ptr(): t for t in found.values()}.values()
    )


class TestFunctionsStayOnC:
    gain, bias = torch.ones(H, requires_grad=True), torch.zeros(H, requires_grad=True)
    weight, beta = torch.randn(H, H, requires_grad=True), torch.tensor(1.3, requires_grad=True)
    binary = ops.straight_through(torch.sign, like=torch.tanh)

    @pytest.mark.parametrize(
        "name", ["swish", "rms_norm", "layer_norm", "linear_relu", "logsumexp", "grad_clip", "binary", "checkpoint"]
    )
    def test_ops(self, name: str) -> None:
        w, gain, bias, beta = self.weight, self.gain, self.bias, self.beta
        binary = type(self).binary
        calls: dict[str, Any] = {
            "swish": lambda z: ops.swish(z, beta), "rms_norm": lambda z: ops.rms_norm(z, H, gain),
            "layer_norm": lambda z: ops.layer_norm(z, H, gain, bias), "linear_relu": lambda z: ops.linear_relu(z, w, bias),
            "logsumexp": lambda z: z - ops.logsumexp(z, dim=-1).unsqueeze(-1),
            "grad_clip": lambda z: ops.grad_clip(z, value=0.5), "binary": lambda z: binary(z),
            "checkpoint": lambda z: ops.checkpoint(torch.sin, z @ w),
        }  # fmt: skip
        op = calls[name]

        def step(x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(op(x + h))
            return h, h

        found = plan(step, torch.randn(5, 3, H), torch.zeros(3, H))
        assert found.backend == "c", found

    def test_a_derived_function_with_the_cells_own_weights(self, tmp_path: Any, monkeypatch: Any) -> None:
        def mixed(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            return torch.tanh(x @ w + b) * torch.sigmoid(x)

        text = gs.derive(mixed, torch.randn(4, H), torch.randn(H, H), torch.randn(H))
        (tmp_path / "derived_mixed.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        derived = __import__("derived_mixed")

        class Cell(nn.Module):
            hidden_size = H

            def __init__(self) -> None:
                super().__init__()
                self.w, self.b = nn.Parameter(0.3 * torch.randn(H, H)), nn.Parameter(torch.zeros(H))

            def forward(self, x: Tensor, h: Tensor) -> Any:
                h = derived.mixed(x + h, self.w, self.b)
                return h, h

        cell, x = Cell(), torch.randn(6, 3, H)
        before = dict(cell.named_parameters())
        layer = gs.Recurrent(cell)
        ours = torch.autograd.grad(layer(x)[0].sum(), cell.parameters())
        assert layer.plan().backend == "c", layer.plan()
        theirs = torch.autograd.grad(gs.Recurrent(cell, backend="loop")(x)[0].sum(), cell.parameters())
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        assert all(before[name] is parameter for name, parameter in cell.named_parameters())

"""Recurrent cells as people write them: modules, closures, custom Functions. Each is `cell(x, state) -> (y, state)`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class UserCell:
    """A way to make a cell for (input size, hidden size), and the state it starts from."""

    make: Callable[[int, int], nn.Module]
    states: Callable[[int, int], Any]
    backend: str = "c"


CELLS: dict[str, UserCell] = {}


def h_only(batch: int, hidden: int) -> Tensor:
    return torch.zeros(batch, hidden)


def h_and_c(batch: int, hidden: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(batch, hidden), torch.zeros(batch, hidden)


def user_cell(name: str, states: Callable[[int, int], Any] = h_only, backend: str = "c") -> Callable[[Any], Any]:
    def keep(make: Any) -> Any:
        CELLS[name] = UserCell(make, states, backend)
        return make

    return keep


@user_cell("nn_rnn_cell")
class FromRNNCell(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.cell = nn.RNNCell(i, h)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(x, h)
        return h, h


@user_cell("nn_gru_cell")
class FromGRUCell(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(i, h)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(x, h)
        return h, h


@user_cell("nn_lstm_cell", h_and_c)
class FromLSTMCell(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(i, h)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, c = self.cell(x, state)
        return h, (h, c)


@user_cell("lstm_with_slices", h_and_c)
class SlicedLSTM(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.h = h
        self.w = nn.Linear(i + h, 4 * h)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, c = state
        z = self.w(torch.cat([x, h], dim=1))
        i, f = torch.sigmoid(z[:, : self.h]), torch.sigmoid(z[:, self.h : 2 * self.h] + 1.0)
        g, o = torch.tanh(z[:, 2 * self.h : 3 * self.h]), torch.sigmoid(z[:, 3 * self.h :])
        c = f * c + i * g
        h = o * torch.tanh(c)
        return h, (h, c)


@user_cell("peephole_lstm", h_and_c)
class PeepholeLSTM(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, 4 * h), nn.Linear(h, 4 * h, bias=False)
        self.peep = nn.Parameter(torch.randn(3, h) * 0.3)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, c = state
        i, f, g, o = (self.x2h(x) + self.h2h(h)).chunk(4, dim=-1)
        i, f = torch.sigmoid(i + self.peep[0] * c), torch.sigmoid(f + self.peep[1] * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + self.peep[2] * c) * c.tanh()
        return h, (h, c)


@user_cell("layer_norm_lstm", h_and_c)
class LayerNormLSTM(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, 4 * h, bias=False), nn.Linear(h, 4 * h, bias=False)
        self.ln_x, self.ln_h, self.ln_c = nn.LayerNorm(4 * h), nn.LayerNorm(4 * h), nn.LayerNorm(h)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, c = state
        i, f, g, o = (self.ln_x(self.x2h(x)) + self.ln_h(self.h2h(h))).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(self.ln_c(c))
        return h, (h, c)


class FastSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (v,) = ctx.saved_tensors
        return grad / (1 + 10 * v.abs()) ** 2


@user_cell("lif_with_surrogate", h_and_c)
class LIF(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w, self.beta = nn.Linear(i, h), 0.9

    def forward(self, x: Tensor, state: Any) -> Any:
        v, s = state
        v = self.beta * v * (1 - s.detach()) + self.w(x)
        s = FastSigmoid.apply(v - 1.0)
        return s, (v, s)


def three_states(batch: int, hidden: int) -> dict[str, Tensor]:
    return {name: torch.zeros(batch, hidden) for name in ("v", "a", "s")}


@user_cell("recurrent_adaptive_lif", three_states)
class ALIF(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w, self.r = nn.Linear(i, h), nn.Linear(h, h, bias=False)
        self.alpha = nn.Parameter(torch.full((h,), 0.9))

    def forward(self, x: Tensor, state: Any) -> Any:
        v, a, s = state["v"], state["a"], state["s"]
        a = 0.95 * a + 0.05 * s
        v = torch.clamp(self.alpha, 0.5, 0.99) * v + self.w(x) + self.r(s) - s
        s = FastSigmoid.apply(v - 1.0 - 1.8 * a)
        return s, {"v": v, "a": a, "s": s}


@user_cell("relu_rnn")
class ReluRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, h), nn.Linear(h, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = F.relu(self.x2h(x) + self.h2h(h))
        return h, h


@user_cell("indrnn")
class IndRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(i, h), nn.Parameter(torch.rand(h))

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.relu(self.w(x) + self.u * h)
        return h, h


@user_cell("recurrent_highway")
class RHN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h = nn.Linear(i, 2 * h)
        self.r = nn.ModuleList(nn.Linear(h, 2 * h) for _ in range(3))

    def forward(self, x: Tensor, s: Tensor) -> Any:
        for depth, layer in enumerate(self.r):
            z = layer(s) + (self.x2h(x) if depth == 0 else 0)
            h, t = z.chunk(2, -1)
            t = torch.sigmoid(t)
            s = torch.tanh(h) * t + s * (1 - t)
        return s, s


@user_cell("liquid_time_constant")
class LTC(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.f = nn.Linear(i + h, h)
        self.a, self.tau = nn.Parameter(torch.randn(h)), nn.Parameter(torch.ones(h))

    def forward(self, x: Tensor, h: Tensor) -> Any:
        dt = 0.1
        for _ in range(3):
            f = torch.sigmoid(self.f(torch.cat((x, h), -1)))
            h = (h + dt * f * self.a) / (1 + dt * (1 / F.softplus(self.tau) + f))
        return h, h


def lmu_states(batch: int, hidden: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(batch, hidden), torch.zeros(batch, 4)


@user_cell("legendre_memory_unit", lmu_states)
class LMU(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        order, theta = 4, 20.0
        q = torch.arange(order, dtype=torch.float32)
        r = (2 * q + 1)[:, None] / theta
        a = torch.where(q[:, None] < q[None], -1.0, (-1.0) ** (q[:, None] - q[None] + 1)) * r
        self.register_buffer("a", torch.matrix_exp(a))
        self.register_buffer("b", ((-1.0) ** q)[:, None] * r)
        self.e_x, self.e_h, self.e_m = (
            nn.Linear(i, 1, bias=False),
            nn.Linear(h, 1, bias=False),
            nn.Linear(order, 1, bias=False),
        )
        self.w_x, self.w_h, self.w_m = nn.Linear(i, h), nn.Linear(h, h, bias=False), nn.Linear(order, h, bias=False)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, m = state
        u = self.e_x(x) + self.e_h(h) + self.e_m(m)
        m = F.linear(m, self.a) + F.linear(u, self.b)
        h = torch.tanh(self.w_x(x) + self.w_h(h) + self.w_m(m))
        return h, (h, m)


@user_cell("cornn", h_and_c)
class CoRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w = nn.Linear(i + 2 * h, h)
        self.dt, self.gamma, self.eps = 0.05, 2.7, 4.7

    def forward(self, x: Tensor, state: Any) -> Any:
        y, z = state
        z = z + self.dt * (torch.tanh(self.w(torch.cat((x, z, y), 1))) - self.gamma * y - self.eps * z)
        y = y + self.dt * z
        return y, (y, z)


@user_cell("fast_grnn")
class FastGRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(i, h) * 0.1), nn.Parameter(torch.randn(h, h) * 0.1)
        self.bg, self.bu = nn.Parameter(torch.ones(1, h)), nn.Parameter(torch.ones(1, h))
        self.zeta, self.nu = nn.Parameter(torch.ones(1, 1)), nn.Parameter(-4 * torch.ones(1, 1))

    def forward(self, x: Tensor, h: Tensor) -> Any:
        pre = torch.matmul(x, self.w) + torch.matmul(h, self.u)
        z, c = torch.sigmoid(pre + self.bg), torch.tanh(pre + self.bu)
        h = z * h + (torch.sigmoid(self.zeta) * (1.0 - z) + torch.sigmoid(self.nu)) * c
        return h, h


def qrnn_states(batch: int, hidden: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(batch, hidden), torch.zeros(batch, hidden)


@user_cell("qrnn_fo_pooling", h_and_c)
class QRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w = nn.Linear(i, 3 * h)

    def forward(self, x: Tensor, state: Any) -> Any:
        _, c = state
        z, f, o = self.w(x).chunk(3, -1)
        f = f.sigmoid()
        c = torch.lerp(z.tanh(), c, f)
        h = o.sigmoid() * c
        return h, (h, c)


@user_cell("sru")
class SRU(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.w, self.skip = nn.Linear(i, 3 * h, bias=False), nn.Linear(i, h, bias=False)
        self.v, self.b = nn.Parameter(torch.randn(2, h) * 0.2), nn.Parameter(torch.zeros(2, h))

    def forward(self, x: Tensor, c: Tensor) -> Any:
        u, f, r = torch.split(self.w(x), self.b.shape[1], dim=1)
        f = torch.sigmoid(f + self.v[0] * c + self.b[0])
        r = torch.sigmoid(r + self.v[1] * c + self.b[1])
        c = f * c + (1 - f) * u
        return r * c + (1 - r) * self.skip(x), c


@user_cell("zoneout_eval", h_and_c)
class ZoneoutLSTM(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.cell, self.p = nn.LSTMCell(i, h), 0.15
        self.eval()

    def forward(self, x: Tensor, state: Any) -> Any:
        h, c = self.cell(x, state)
        if self.training:
            keep = torch.rand_like(h) < self.p
            h = torch.where(keep, state[0], h)
        else:
            h = self.p * state[0] + (1 - self.p) * h
        return h, (h, c)


@user_cell("zoneout_train", h_and_c, backend="loop")
class TrainingZoneout(ZoneoutLSTM):
    def __init__(self, i: int, h: int) -> None:
        super().__init__(i, h)
        self.train()


class Attend(nn.Module):
    """Attends over six slots of a memory that is part of the state."""

    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.q, self.k, self.cell = nn.Linear(h, h), nn.Linear(h, h, bias=False), nn.GRUCell(i + h, h)
        self.write = nn.Linear(h, 6)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, memory = state
        scores = torch.einsum("bh,bnh->bn", self.q(h), self.k(memory)) / math.sqrt(h.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        read = (weights.unsqueeze(-1) * memory).sum(1)
        h = self.cell(torch.cat([x, read], -1), h)
        gate = torch.sigmoid(self.write(h)).unsqueeze(-1)
        memory = memory * (1 - gate) + gate * h.unsqueeze(1)
        return h, (h, memory)


def memory_states(batch: int, hidden: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(batch, hidden), torch.zeros(batch, 6, hidden)


CELLS["attention_over_memory"] = UserCell(Attend, memory_states)


class StraightThroughRound(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.round(x * 4) / 4

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


@user_cell("quantised_state_function")
class QuantisedRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, h), nn.Linear(h, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.tanh(self.x2h(x) + self.h2h(h))
        return StraightThroughRound.apply(h), h


@user_cell("weight_norm_rnn")
class WeightNormRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h = nn.Linear(i, h)
        self.v, self.g = nn.Parameter(torch.randn(h, h)), nn.Parameter(torch.ones(h, 1))

    def forward(self, x: Tensor, h: Tensor) -> Any:
        weight = self.g * self.v / self.v.norm(dim=1, keepdim=True)
        h = torch.tanh(self.x2h(x) + F.linear(h, weight))
        return h, h


@user_cell("low_rank_gelu")
class LowRank(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.a, self.b = nn.Linear(i, h), nn.Linear(h, 3, bias=False), nn.Linear(3, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = F.gelu(self.x2h(x) + self.b(self.a(h)))
        return h, 0.5 * h


@user_cell("mgu")
class MGU(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.f, self.n = nn.Linear(i + h, h), nn.Linear(i + h, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        f = torch.sigmoid(self.f(torch.cat([h, x], 1)))
        n = torch.tanh(self.n(torch.cat([f * h, x], 1)))
        h = (1 - f) * h + f * n
        return {"out": h, "gate": f}, h


@user_cell("antisymmetric_rnn")
class AntisymmetricRNN(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.w = nn.Linear(i, h), nn.Parameter(torch.randn(h, h) * 0.2)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        w = self.w - self.w.t() - 0.01 * torch.eye(self.w.shape[0])
        h = h + 0.1 * torch.tanh(self.x2h(x) + h @ w)
        return h, h


@user_cell("leaky_esn_softmax_gate")
class SoftmaxGate(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.gate, self.x2h, self.h2h = nn.Linear(h, 2), nn.Linear(i, h), nn.Linear(h, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        p = torch.softmax(self.gate(h), dim=-1)
        h = p[:, 0:1] * h + p[:, 1:2] * torch.tanh(self.x2h(x) + self.h2h(h))
        return h, h


@user_cell("group_norm_free_rms")
class RMSNormGRU(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.cell, self.norm = nn.GRUCell(i, h), nn.RMSNorm(h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = self.norm(self.cell(x, h))
        return h, h


@user_cell("data_dependent_if", backend="loop")
class Branching(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h = nn.Linear(i, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.tanh(self.x2h(x) + h)
        if h.mean() > 0:
            h = h * 0.5
        return h, h


@user_cell("batch_statistics", backend="loop")
class BatchMean(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h = nn.Linear(i, h)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.tanh(self.x2h(x) + h - h.mean(0, keepdim=True))
        return h, h


@user_cell("previous_input", lambda batch, hidden: (torch.zeros(batch, hidden), torch.zeros(batch, hidden)))
class PreviousInput(nn.Module):
    """The state carries the previous projected input along unchanged."""

    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, h), nn.Linear(2 * h, h)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, before = state
        now = self.x2h(x)
        h = torch.tanh(self.h2h(torch.cat([h, now - before], -1)))
        return (h, now), (h, now)


class SpikeAsFloat(torch.autograd.Function):
    """As most spiking packages write it: the step names its dtype, so it does not run in float64."""

    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (v,) = ctx.saved_tensors
        return grad / (1 + 10 * v.abs()) ** 2


@user_cell("spikes_as_float", h_and_c)
class SpikesAsFloat(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, h), nn.Linear(h, h, bias=False)

    def forward(self, x: Tensor, state: Any) -> Any:
        z, v = state
        v = 0.9 * v + self.x2h(x) + self.h2h(z) - 0.3 * z
        z = SpikeAsFloat.apply(v - 0.3)
        return z, (z, v)


def stabilised(batch: int, hidden: int) -> tuple[Tensor, ...]:
    return torch.zeros(batch, hidden), torch.zeros(batch, hidden), torch.ones(batch, hidden), torch.zeros(batch, hidden)


@user_cell("slstm", stabilised)
class SLSTM(nn.Module):
    """Exponential gates with a stabiliser; backward of logsigmoid computes with whole numbers."""

    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x2h, self.h2h = nn.Linear(i, 4 * h), nn.Linear(h, 4 * h, bias=False)

    def forward(self, x: Tensor, state: Any) -> Any:
        h, c, n, m = state
        z, i, f, o = (self.x2h(x) + self.h2h(h)).chunk(4, -1)
        f = nn.functional.logsigmoid(f) + m
        top = torch.maximum(f, i)
        kept, new = torch.exp(f - top), torch.exp(i - top)
        c, n = kept * c + new * torch.tanh(z), kept * n.abs() + new
        h = torch.sigmoid(o) * c / n
        return h, (h, c, n, top)

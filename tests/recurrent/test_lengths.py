"""Sequences of different lengths give what each gives alone, and nothing is computed behind their ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils import _pytree as pytree

from gradsmith.recurrent import LIFCell, Recurrent, TanhRNNCell, scan
from gradsmith.recurrent.engine import Engine
from gradsmith.recurrent.span import Span

IN, H = 5, 7
LENGTHS = [4, 9, 1, 6, 9, 3]
T, B = 11, len(LENGTHS)  # nobody has the last two steps


class Readout(nn.Module):
    """Its output is a product of the state, and its backward starts with one of grad_y."""

    hidden_size = H

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.hidden, self.out = nn.Linear(IN, H), nn.Linear(H, H), nn.Linear(H, 3)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.tanh(self.inner(x) + self.hidden(h))
        return self.out(h), h


CELLS: dict[str, Any] = {
    "RNN": lambda: nn.RNNCell(IN, H),
    "GRU": lambda: nn.GRUCell(IN, H),
    "LSTM": lambda: nn.LSTMCell(IN, H),
    "LIF": lambda: LIFCell(IN, H),
    "readout": Readout,
}


def alone(layer: Recurrent, x: Tensor, state: Any) -> tuple[Tensor, Any]:
    """Each sequence by itself, as a loop."""
    loop = Recurrent(layer.cell, reverse=layer.reverse, backend="loop")
    found = [loop(x[:n, [b]], pytree.tree_map(lambda s, b=b: s[[b]], state)) for b, n in enumerate(LENGTHS)]
    whole = [nn.functional.pad(y, (0, 0, 0, 0, 0, T - len(y))) for y, _ in found]
    return torch.cat(whole, 1), pytree.tree_map(lambda *parts: torch.cat(parts), *(last for _, last in found))


def gradients(y: Tensor, last: Any, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    total = sum((leaf * leaf.detach().cos()).sum() for leaf in (y, *pytree.tree_leaves(last)))
    return torch.autograd.grad(total, leaves)


@pytest.mark.parametrize(("reverse", "every", "threads"), [(False, None, 2), (True, None, 1), (False, 4, 1)])
@pytest.mark.parametrize("kind", CELLS)
def test_each_sequence_gives_what_it_gives_alone(
    kind: str, reverse: bool, every: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr("gradsmith.recurrent.engine._WORTH_A_THREAD", 1)
    layer = Recurrent(CELLS[kind](), reverse=reverse, checkpoint_every=every)
    x = torch.randn(T, B, IN, requires_grad=True)
    start = layer._start(0, None, x, B, True)
    state = pytree.tree_map(lambda leaf: torch.randn_like(leaf).requires_grad_(), start)
    leaves = [x, *pytree.tree_leaves(state), *layer.parameters()]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        y, last = layer(x, state, lengths=LENGTHS)
        ours = gradients(y, last, leaves)
    finally:
        torch.set_num_threads(before)
    assert layer.plan().uneven == {B: True}
    want, ends = alone(layer, x, state)
    torch.testing.assert_close((y, last), (want, ends))
    torch.testing.assert_close(ours, gradients(want, ends, leaves), rtol=1e-4, atol=1e-5)


def test_no_row_runs_behind_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    call = Engine._call

    def counted(self: Engine, function: Any, kernel: Any, buffers: Any, whole: Any, span: Span, shares: Any) -> None:
        rows.append(span.rows)
        call(self, function, kernel, buffers, whole, span, shares)

    layer, x = Recurrent(nn.LSTMCell(IN, H), num_layers=2, bidirectional=True), torch.randn(T, B, IN)
    layer(x, lengths=LENGTHS)
    monkeypatch.setattr(Engine, "_call", counted)
    layer(x, lengths=LENGTHS)[0].sum().backward()
    assert rows == [sum(LENGTHS)] * 8
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        Recurrent(nn.LSTMCell(IN, H))(x, lengths=LENGTHS)
    assert max(kept) < (sum(LENGTHS) + B) * 4 * H + 1


def test_scan_takes_lengths_and_packed_sequences() -> None:
    weight = torch.randn(H, H, dtype=torch.float64, requires_grad=True)

    def step(x: dict[str, Tensor], h: Tensor, w: Tensor) -> Any:
        h = torch.tanh(x["a"] + x["b"] * h @ w)
        return (h, h * 2), h

    x = {name: torch.randn(T, B, H, dtype=torch.float64) for name in "ab"}
    zeros = torch.zeros(B, H, dtype=torch.float64)
    (y, double), last = scan(step, x, zeros, (weight,), lengths=torch.tensor(LENGTHS))
    loops = [
        scan(step, {k: v[:n, [b]] for k, v in x.items()}, zeros[:1], (weight,), backend="loop")
        for b, n in enumerate(LENGTHS)
    ]
    torch.testing.assert_close(last, torch.cat([end for _, end in loops]))
    for b, n in enumerate(LENGTHS):
        torch.testing.assert_close(y[:n, b], loops[b][0][0][:, 0])
        assert not y[n:, b].any()
    torch.testing.assert_close(double, 2 * y)
    cell = TanhRNNCell(H, H)
    packed = pack_padded_sequence(x["a"].float(), torch.tensor(LENGTHS), enforce_sorted=False)
    rows, _ = scan(cell, packed, torch.zeros(B, H))
    padded, _ = scan(cell, x["a"].float(), torch.zeros(B, H), lengths=LENGTHS)
    assert isinstance(rows, PackedSequence)
    want = pack_padded_sequence(padded, torch.tensor(LENGTHS), enforce_sorted=False)
    torch.testing.assert_close(rows.data, want.data)


class Attends(nn.Module):
    """Has a memory for every sequence, so its rows cannot be left out one by one."""

    hidden_size = H

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(IN, H)
        self.memory = torch.randn(B, 4, H)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        weights = torch.einsum("bh,bmh->bm", h, self.memory).softmax(-1)
        h = torch.tanh(self.inner(x) + torch.einsum("bm,bmh->bh", weights, self.memory))
        return h, h


def test_a_cell_with_something_for_every_sequence_keeps_all_rows() -> None:
    layer, x = Recurrent(Attends()), torch.randn(T, B, IN)
    y, last = layer(x, lengths=LENGTHS)
    whole, _ = layer(x)
    for b, n in enumerate(LENGTHS):
        torch.testing.assert_close(y[:n, b], whole[:n, b])
        assert not y[n:, b].any()
        torch.testing.assert_close(last[b], whole[n - 1, b])


def test_second_derivatives_replay_the_rows_that_run() -> None:
    layer = Recurrent(nn.GRUCell(2, 2)).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: layer(x, lengths=[1, 3])[0], (x,))


def test_a_plan_that_is_wrong_for_different_lengths_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(nn.RNNCell):
        """No other test has a plan for it."""

    layer, x, lengths = Recurrent(Own(IN, H)), torch.randn(T, 4, IN), [9, 2, 5, 3]
    right = Span.before
    monkeypatch.setattr(Span, "before", lambda self, states: right(self, states) * (1 if self.uneven is None else 1.01))
    monkeypatch.setattr("gradsmith.recurrent.store.keep", lambda plan, name: None)
    y, _ = layer(x, lengths=lengths)
    ours = torch.autograd.grad(y.sum(), list(layer.parameters()))
    assert layer.plan(x).uneven == {4: False}
    want, _ = Recurrent(layer.cell, backend="loop")(x, lengths=lengths)
    torch.testing.assert_close(ours, torch.autograd.grad(want.sum(), list(layer.parameters())), rtol=1e-4, atol=1e-5)

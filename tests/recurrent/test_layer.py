"""`Recurrent` behaves as `nn.RNN`, `nn.GRU` and `nn.LSTM` do."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from gradsmith.recurrent import LIFCell, MinGRUCell, Recurrent, TanhRNNCell

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def pair(kind: str, **options: Any) -> tuple[nn.Module, Recurrent]:
    """Torch's layer and ours with the same weights."""
    theirs = getattr(nn, kind)(3, 5, **options)
    ours = Recurrent(getattr(nn, f"{kind}Cell")(3, 5), **options)
    ends = ["", "_reverse"] if options.get("bidirectional") else [""]
    places = itertools.product(range(options.get("num_layers", 1)), ends)
    with torch.no_grad():
        for cell, (layer, end) in zip(ours.cells, places):
            for name in NAMES:
                getattr(cell, name).copy_(getattr(theirs, f"{name}_l{layer}{end}"))
    return theirs, ours


def last_h(kind: str, states: Any) -> Tensor:
    states = states if isinstance(states, list) else [states]
    return torch.stack([state[0] if kind == "LSTM" else state for state in states])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_same_as_torch(kind: str, options: dict[str, Any]) -> None:
    theirs, ours = pair(kind, **options)
    x = torch.randn(6, 4, 3, requires_grad=True)
    (want, h), (y, last) = theirs(x), ours(x)
    torch.testing.assert_close(y, want)
    torch.testing.assert_close(last_h(kind, last), h[0] if kind == "LSTM" else h)
    torch.testing.assert_close(torch.autograd.grad(y.sin().sum(), x), torch.autograd.grad(want.sin().sum(), x))


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_packed_sequences(kind: str) -> None:
    theirs, ours = pair(kind, bidirectional=True)
    lengths = torch.tensor([4, 7, 1, 5])
    packed = pack_padded_sequence(torch.randn(7, 4, 3), lengths, enforce_sorted=False)
    (want, h), (y, last) = theirs(packed), ours(packed)
    assert isinstance(y, PackedSequence)
    torch.testing.assert_close(y.data, want.data)
    torch.testing.assert_close(last_h(kind, last), h[0] if kind == "LSTM" else h)
    torch.testing.assert_close(pad_packed_sequence(y)[0], pad_packed_sequence(want)[0])


def test_lengths_are_padded_sequences_without_packing() -> None:
    _, ours = pair("LSTM", bidirectional=True)
    x, lengths = torch.randn(7, 4, 3, requires_grad=True), torch.tensor([4, 7, 1, 5])
    y, _ = ours(x, lengths=lengths)
    want, _ = ours(pack_padded_sequence(x, lengths, enforce_sorted=False))
    torch.testing.assert_close(y, pad_packed_sequence(want)[0])
    (g,) = torch.autograd.grad(y.sum(), x)
    assert (g[5:, 0] == 0).all()
    assert (g[:4, 0] != 0).any()


def test_reverse_is_the_second_direction() -> None:
    _, both = pair("GRU", bidirectional=True)
    back = Recurrent(both.cells[1], reverse=True)
    x = torch.randn(6, 2, 3)
    torch.testing.assert_close(back(x)[0], both(x)[0][..., 5:])


def test_initial_state_and_no_batch() -> None:
    theirs, ours = pair("GRU")
    h = torch.randn(1, 4, 5)
    x = torch.randn(6, 4, 3)
    torch.testing.assert_close(ours(x, h[0])[0], theirs(x, h)[0])
    torch.testing.assert_close(ours(x[:, 1], h[0, 1])[0], theirs(x[:, 1], h[:, 1])[0])
    assert ours(x[:, 1])[1].shape == (5,)


def test_state_dict_is_that_of_the_cell() -> None:
    cell = nn.LSTMCell(3, 5)
    layer = Recurrent(cell)
    assert list(layer.state_dict()) == list(cell.state_dict())
    other = Recurrent(nn.LSTMCell(3, 5))
    other.load_state_dict(layer.state_dict())
    nn.LSTMCell(3, 5).load_state_dict(layer.state_dict())
    torch.testing.assert_close(other.cell.weight_ih, cell.weight_ih)
    model = nn.Sequential(Recurrent(nn.LSTMCell(3, 5)))
    assert list(model.state_dict()) == [f"0.{name}" for name in cell.state_dict()]
    model.load_state_dict(model.state_dict())


def test_dropout_between_layers_only() -> None:
    layer = Recurrent(TanhRNNCell(3, 5), num_layers=2, dropout=0.9)
    x = torch.randn(6, 4, 3)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    assert (layer(x)[0] != 0).all()
    layer.eval()
    torch.testing.assert_close(layer(x)[0], layer(x)[0])


def test_layers_have_weights_of_their_own() -> None:
    layer = Recurrent(TanhRNNCell(5, 5), num_layers=2)
    assert not torch.equal(layer.cells[0].weight_ih, layer.cells[1].weight_ih)


def test_cells_with_their_own_initial_state() -> None:
    y, (v, s) = Recurrent(LIFCell(3, 5))(torch.randn(6, 4, 3))
    assert y.shape == (6, 4, 5)
    assert v.shape == s.shape == (4, 5)
    assert Recurrent(MinGRUCell(3, 5), checkpoint_every=2)(torch.randn(6, 4, 3))[0].shape == (6, 4, 5)


def test_a_plan_says_what_was_decided() -> None:
    shown = Recurrent(nn.GRUCell(3, 5)).plan(torch.randn(6, 4, 3))
    assert shown.backend == "c"
    for word in ("hoisted", "looped", "saved", "recomputed", "deferred", "checked"):
        assert word in str(shown)
    assert repr(shown) == "<Plan: c (compiled C loops)>" and "hoisted" in shown._repr_html_()


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"checkpoint_every": 2}])
def test_after_a_call_its_plan_is_there(options: dict[str, Any]) -> None:
    layer = Recurrent(nn.GRUCell(3, 5), **options)
    with pytest.raises(ValueError, match=r"not called yet .* write layer.plan\(x\)"):
        layer.plan()
    x = torch.randn(6, 4, 3)
    layer(x)
    assert "hoisted" in str(layer.plan())
    assert layer.plan().backend == layer.plan(x).backend == "c"
    twin = copy.deepcopy(layer)
    twin.backend = "loop"
    twin(x)
    assert twin.plan().backend == "loop" and layer.plan().backend == "c"


class TestBadInput:
    def test_no_time_dimension(self) -> None:
        with pytest.raises(ValueError, match="no time dimension"):
            Recurrent(nn.GRUCell(3, 5))(torch.randn(3))

    def test_lengths(self) -> None:
        layer, x = Recurrent(nn.GRUCell(3, 5)), torch.randn(6, 4, 3)
        with pytest.raises(ValueError, match=r"lengths has shape \(3,\), but the batch has 4 sequences"):
            layer(x, lengths=torch.tensor([1, 2, 3]))
        with pytest.raises(ValueError, match="between 1 and the 6 time steps of x, found 0 to 9"):
            layer(x, lengths=torch.tensor([1, 0, 9, 2]))
        with pytest.raises(ValueError, match="whole numbers"):
            layer(x, lengths=torch.tensor([1.0, 2, 3, 4]))

    def test_kinds(self) -> None:
        with pytest.raises(TypeError, match="x must be a tensor or a PackedSequence, not list"):
            Recurrent(nn.GRUCell(3, 5))([torch.randn(6, 4, 3)])  # type: ignore[arg-type]
        with pytest.raises(
            TypeError, match=r"cell must be an nn.Module, not function; for a function use gradsmith.scan"
        ):
            Recurrent(lambda x, h: (x, h))  # type: ignore[arg-type]

    def test_no_steps(self) -> None:
        with pytest.raises(ValueError, match="T must be at least 1"):
            Recurrent(nn.GRUCell(3, 5))(torch.randn(0, 4, 3))

    def test_cell_without_initial_state(self) -> None:
        class Plain(nn.Module):
            def forward(self, x: Tensor, h: Tensor) -> Any:
                return h + x, h + x

        with pytest.raises(ValueError, match="Plain has neither initial_state"):
            Recurrent(Plain())(torch.randn(6, 4, 3))

    def test_second_layer_of_an_unknown_cell(self) -> None:
        class Odd(nn.Module):
            def __init__(self, size: int) -> None:
                super().__init__()
                self.input_size, self.hidden_size = size, 2 * size
                self.w = nn.Linear(size, 2 * size)

        with pytest.raises(ValueError, match="pass make=lambda size"):
            Recurrent(Odd(3), num_layers=2)

    def test_number_of_states(self) -> None:
        with pytest.raises(ValueError, match="expected 2 states"):
            Recurrent(nn.GRUCell(3, 5), bidirectional=True)(torch.randn(6, 4, 3), [torch.zeros(4, 5)])

    @pytest.mark.parametrize(
        "bad", [{"num_layers": 0}, {"dropout": 2.0}, {"bidirectional": True, "reverse": True}], ids=str
    )
    def test_options(self, bad: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="Recurrent: "):
            Recurrent(nn.GRUCell(3, 5), **bad)

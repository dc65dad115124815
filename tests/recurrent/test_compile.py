"""torch.compile around a layer: one operator of the graph where that can be, a graph break with a reason elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs
from gradsmith.recurrent import AdaptiveLIFCell, LIFCell, Recurrent, TanhRNNCell, linear_recurrence

pytestmark = pytest.mark.deep
I, H = 3, 6  # noqa: E741


@pytest.fixture(autouse=True)
def compiled_anew() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Model(nn.Module):
    def __init__(self, cell: nn.Module, **options: Any) -> None:
        super().__init__()
        self.layer = Recurrent(cell, **options)
        self.head = nn.Linear(H * (2 if options.get("bidirectional") else 1), 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.layer(x.tanh())[0]).relu()
        return out


def whole(model: nn.Module) -> Any:
    return torch.compile(model, backend="aot_eager", fullgraph=True)


CASES: dict[str, Any] = {
    "GRU": lambda: Model(nn.GRUCell(I, H)),
    "LSTM": lambda: Model(nn.LSTMCell(I, H), num_layers=2, bidirectional=True),
    "reverse, batch first": lambda: Model(TanhRNNCell(I, H), reverse=True, batch_first=True),
    "spiking": lambda: Model(AdaptiveLIFCell(I, H)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_whole_model_is_one_graph(case: str) -> None:
    model = CASES[case]()
    compiled = whole(model)
    for steps, batch in ((7, 4), (9, 4), (9, 5), (1, 1)):
        x = torch.randn(steps, batch, I, requires_grad=True)
        got, want = compiled(x), model(x)
        torch.testing.assert_close(got, want)
        sources = [x, *model.parameters()]
        torch.testing.assert_close(
            torch.autograd.grad(got.sin().sum(), sources), torch.autograd.grad(want.sin().sum(), sources)
        )


def test_no_grad_and_eval_compile_again() -> None:
    class Mode(TanhRNNCell):
        def forward(self, x: Tensor, h: Tensor) -> Any:
            y, h = super().forward(x, h)
            return (y if self.training else -y), h

    model, x = Model(Mode(I, H)), torch.randn(7, 4, I)
    compiled = whole(model)
    torch.testing.assert_close(compiled(x), model(x))
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    trained = model(x)
    model.eval()
    torch.testing.assert_close(compiled(x), model(x))
    assert not torch.equal(model(x), trained)


def test_scan_of_a_module() -> None:
    class Scanning(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = TanhRNNCell(I, H)

        def forward(self, x: Tensor) -> Tensor:
            y, last = gs.scan(self.cell, x, self.cell.initial_state(x.shape[1]))
            return y.sin() + last

    model, x = Scanning(), torch.randn(7, 4, I)
    torch.testing.assert_close(whole(model)(x), model(x))


def test_parameters_are_read_at_every_call() -> None:
    model, x = Model(TanhRNNCell(I, H)), torch.randn(7, 4, I)
    compiled = whole(model)
    before = compiled(x)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    torch.testing.assert_close(compiled(x), model(x))
    assert not torch.equal(compiled(x), before)


def test_a_changed_python_value_is_never_ignored() -> None:
    model, x = Model(LIFCell(I, H)), torch.randn(7, 4, I)
    compiled = whole(model)
    compiled(x)
    model.layer.cell.leak = 0.1
    with pytest.raises(RuntimeError, match=r"LIFCell has changed since torch.compile traced it .* compile it again"):
        compiled(x)
    torch.compiler.reset()
    torch.testing.assert_close(compiled(x), model(x))


WEIGHT = torch.linspace(-1, 1, H * H).view(H, H)


def closed_step(x: Tensor, h: Tensor) -> Any:
    h = torch.tanh(x + h @ WEIGHT)
    return h, h


class Drawing(nn.Module):
    hidden_size = H

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = torch.tanh(h + nn.functional.dropout(x, 0.5, self.training))
        return h, h


BREAKS: dict[str, tuple[Any, str]] = {
    "a function": (
        lambda x: gs.scan(closed_step, x, torch.zeros(4, H))[0].cos(),
        "gradsmith.scan cannot be part of this graph, because only a module can be the step of a graph",
    ),
    "lengths": (
        lambda x: Recurrent(TanhRNNCell(H, H))(x, lengths=torch.tensor([7, 3, 2, 1]))[0],
        "Recurrent|graph",
    ),
    "a kernel": (lambda x: linear_recurrence(x, x), "gradsmith.linear_recurrence cannot be part of this graph"),
}


@pytest.mark.parametrize("what", BREAKS)
def test_what_cannot_be_in_a_graph_breaks_it_and_says_why(what: str) -> None:
    function, sentence = BREAKS[what]
    x = torch.randn(7, 4, H)
    if what != "lengths":  # its cell is drawn anew at every call
        torch.testing.assert_close(torch.compile(function, backend="aot_eager")(x), function(x))
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=sentence):
        torch.compile(function, backend="aot_eager", fullgraph=True)(x)


def test_random_cells_break_the_graph_and_say_why() -> None:
    model, x = Recurrent(Drawing()), torch.randn(7, 4, H)
    compiled = torch.compile(model, backend="aot_eager")
    assert compiled(x)[0].shape == (7, 4, H)
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"because .*draws random numbers"):
        whole(model)(x)


def test_lengths_without_fullgraph() -> None:
    layer, x, lengths = Recurrent(nn.GRUCell(I, H)), torch.randn(7, 4, I), torch.tensor([7, 3, 2, 1])
    compiled = torch.compile(layer, backend="aot_eager")
    torch.testing.assert_close(compiled(x, lengths=lengths)[0], layer(x, lengths=lengths)[0])

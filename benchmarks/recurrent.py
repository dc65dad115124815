"""How fast is a user's own cell? Forward and backward, interleaved rounds, medians with quartiles.

    python benchmarks/recurrent.py [--threads 1 2] [--rounds 15] [--cells rnn gru ...] [--shapes 32x128x256 ...]

Every ratio is formed within a round, where both sides saw the same machine, and then summarised. "saved" is what is
held between forward and backward (saved tensors and the output) besides inputs and parameters.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.recurrent import linear_recurrence, plan, scan
from gradsmith.recurrent.cells import GRUCell, LayerNormLSTMCell, LSTMCell, TanhRNNCell
from gradsmith.recurrent.scan import _plans
from gradsmith.recurrent.spiking import AdaptiveLIFCell, LIFCell

SHAPES = {
    "32x128x256": (256, 32, 128),
    "16x256x512": (512, 16, 256),
    "8x64x256": (256, 8, 64),
    "1x32x1000": (1000, 1, 32),
}
CELLS: dict[str, Any] = {
    "rnn": TanhRNNCell, "gru": GRUCell, "lstm": LSTMCell, "layer-norm-lstm": LayerNormLSTMCell, "lif": LIFCell, "alif": AdaptiveLIFCell,
}  # fmt: skip
CLOCK = time.perf_counter
LAYERS: dict[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@dataclass
class Case:
    """Ways to compute the same thing, each a function of x that returns y."""

    x: Tensor
    ways: dict[str, Callable[[Tensor], Tensor]]
    parameters: dict[str, list[Tensor]]
    seconds: dict[str, list[float]] = field(default_factory=dict)


def with_index(cell: nn.Module, state: Any) -> Callable[[Tensor], Tensor]:
    def loop(x: Tensor) -> Tensor:
        carried, outputs = state, []
        for t in range(x.shape[0]):
            y, carried = cell(x[t], carried)
            outputs.append(y)
        return torch.stack(outputs)

    return loop


def with_unbind(cell: nn.Module, state: Any) -> Callable[[Tensor], Tensor]:
    def loop(x: Tensor) -> Tensor:
        carried, outputs = state, []
        for x_t in x.unbind(0):
            y, carried = cell(x_t, carried)
            outputs.append(y)
        return torch.stack(outputs)

    return loop


class Projected(nn.Module):
    """A cell given `W x` instead of x: what a user writes who hoists the projection by hand."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell, self.weight = cell, cell.weight_ih

    def forward(self, z: Tensor, state: Any) -> Any:
        original = nn.functional.linear

        def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
            if weight is self.weight:
                return x if bias is None else x + bias
            return original(x, weight, bias)

        nn.functional.linear = linear
        try:
            return self.cell(z, state)
        finally:
            nn.functional.linear = original


def with_hoisting(cell: Any, state: Any) -> Callable[[Tensor], Tensor]:
    loop = with_unbind(Projected(cell), state)
    return lambda x: loop(nn.functional.linear(x, cell.weight_ih))


def make_case(name: str, steps: int, batch: int, size: int) -> Case:
    torch.manual_seed(0)
    cell = CELLS[name](size, size)
    state = cell.initial_state(batch)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "gradsmith": lambda x: scan(cell, x, state)[0],
        "x[t]": with_index(cell, state),
        "unbind": with_unbind(cell, state),
        "unbind+hoist": with_hoisting(cell, state),
    }
    parameters = {way: list(cell.parameters()) for way in ways}
    if name in LAYERS:
        layer = LAYERS[name](size, size)
        ways[f"nn.{name.upper()}"] = lambda x: layer(x)[0]
        parameters[f"nn.{name.upper()}"] = list(layer.parameters())
    return Case(torch.randn(steps, batch, size, requires_grad=True), ways, parameters)


def once(case: Case, way: str, weight: Tensor) -> float:
    started = CLOCK()
    y = case.ways[way](case.x)
    torch.autograd.grad(y, [case.x, *case.parameters[way]], weight, allow_unused=True)
    return CLOCK() - started


def measure(case: Case, rounds: int, budget_s: float) -> None:
    weight = torch.randn_like(case.ways["gradsmith"](case.x))
    for way in case.ways:
        once(case, way, weight)
        case.seconds[way] = []
    started = time.perf_counter()
    gc.disable()
    for number in range(rounds):
        for way in case.ways:
            case.seconds[way].append(once(case, way, weight))
        if number >= 4 and time.perf_counter() - started > budget_s:
            break
    gc.enable()


def saved_bytes(case: Case, way: str) -> int:
    """Bytes held between forward and backward: what autograd saved and the output, without x and the parameters."""
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = case.ways[way](case.x)
    pack(y)
    for tensor in (case.x, *case.parameters[way]):
        storages.pop(tensor.untyped_storage().data_ptr(), None)
    held = sum(storages.values())
    del y
    return held


def quartiles(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def report(name: str, shape: str, threads: int, case: Case) -> None:
    ours = case.seconds["gradsmith"]
    ratios = []
    for way in case.ways:
        if way != "gradsmith":
            low, middle, high = quartiles([theirs / own for theirs, own in zip(case.seconds[way], ours)])
            ratios.append(f"{way} {middle:6.2f} [{low:.2f}, {high:.2f}]")
    memory = saved_bytes(case, "gradsmith")
    against = {
        way: memory / max(1, saved_bytes(case, way)) for way in case.ways if way == "unbind" or way.startswith("nn.")
    }
    kept = ", ".join(f"{ratio:.2f}x {way}" for way, ratio in against.items())
    best = statistics.median(ours) * 1e3
    print(
        f"{name:16} {shape:11} {threads} thread(s) {best:8.2f} ms  "
        + "  ".join(ratios)
        + f"  | saved {memory / 1e6:.2f} MB = {kept}"
    )


def measure_linear_recurrence(rounds: int, threads: int) -> None:
    steps, batch, size = 4096, 4, 64
    a, b = torch.rand(steps, batch, size, requires_grad=True), torch.randn(steps, batch, size, requires_grad=True)

    def loop(b: Tensor) -> Tensor:
        h, outputs = torch.zeros(batch, size), []
        for a_t, b_t in zip(a.unbind(0), b.unbind(0)):
            h = a_t * h + b_t
            outputs.append(h)
        return torch.stack(outputs)

    case = Case(b, {"gradsmith": lambda b: linear_recurrence(a, b), "unbind": loop}, {"gradsmith": [a], "unbind": [a]})
    measure(case, rounds, 20.0)
    report("linear recurrence", "4x64x4096", threads, case)


def measure_planning() -> None:
    """A cell nobody has seen (its constant is new), then the same cell again in the same process."""
    plan(
        lambda x, h: (x + h, x + h), torch.ones(2, 2, 2), torch.zeros(2, 2)
    )  # imports torch's tracing, once per process
    for name, make in CELLS.items():
        cell = make(48, 48)
        cell.extra = time.time()
        state = cell.initial_state(4)
        fresh = {key: value for key, value in vars(cell).items() if key == "extra"}
        weight = fresh["extra"] % 1.0

        def step(x: Tensor, state: Any, cell: Any = cell, weight: float = weight) -> Any:
            y, state = cell(x, state)
            return y * weight, state

        x = torch.randn(8, 4, 48, requires_grad=True)
        started = time.perf_counter()
        scan(step, x, state)
        first = time.perf_counter() - started
        started = time.perf_counter()
        scan(step, x, state)
        again = time.perf_counter() - started
        _plans.clear()
        started = time.perf_counter()
        scan(step, x, state)
        disk = time.perf_counter() - started
        backend = plan(step, x, state).backend
        print(
            f"planning {name:16} new {first:.2f} s, planned {again * 1e3:.2f} ms, from disk only {disk * 1e3:.0f} ms ({backend})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds per case after the first five rounds")
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument(
        "--cpu-time", action="store_true", help="CPU seconds instead of wall clock; for 1 thread on a busy machine"
    )
    parser.add_argument("--only", choices=["cells", "linear", "planning"])
    chosen = parser.parse_args()
    global CLOCK
    if chosen.cpu_time:
        CLOCK = time.process_time
    print("speed of gradsmith over others: median [quartiles]; shapes are batch x hidden x time")
    for threads in chosen.threads:
        torch.set_num_threads(threads)
        for name in chosen.cells if chosen.only in (None, "cells") else []:
            for shape in chosen.shapes:
                case = make_case(name, *SHAPES[shape])
                backend = plan(CELLS[name](4, 4), torch.zeros(2, 2, 4), CELLS[name](4, 4).initial_state(2)).backend
                assert backend == "c", f"{name} runs on {backend}"
                measure(case, chosen.rounds, chosen.budget)
                report(name, shape, threads, case)
        if chosen.only in (None, "linear"):
            measure_linear_recurrence(chosen.rounds, threads)
    if chosen.only in (None, "planning"):
        measure_planning()


if __name__ == "__main__":
    main()

"""Sequences of different lengths: rows that have ended left out, against masks, all steps for all, and torch's packed layers.

    python benchmarks/lengths.py [--shape 32x128x256] [--threads 1] [--rounds 15]

Forward and backward, all ways in turns. Lengths are drawn uniformly from 1 to the number of steps; one sequence has them all.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import gradsmith as gs

KINDS: dict[str, tuple[Any, Any]] = {
    "tanh RNN": (nn.RNNCell, nn.RNN), "GRU": (nn.GRUCell, nn.GRU), "LSTM": (nn.LSTMCell, nn.LSTM),
}  # fmt: skip


def ways(kind: str, shape: tuple[int, int, int]) -> tuple[dict[str, Callable[[], Any]], float]:
    batch, size, steps = shape
    cell, torchs = KINDS[kind]
    ours, theirs = gs.Recurrent(cell(size, size)), torchs(size, size)
    x, weight = torch.randn(steps, batch, size, requires_grad=True), torch.randn(steps, batch, size)
    lengths = torch.randint(1, steps + 1, (batch,))
    lengths[0] = steps
    scan = importlib.import_module("gradsmith.recurrent.scan")

    def masked() -> Any:
        with mock.patch.object(scan, "_fits_uneven", return_value=False):
            return ours(x, lengths=lengths)[0]

    def packed() -> Any:
        return pad_packed_sequence(theirs(pack_padded_sequence(x, lengths, enforce_sorted=False))[0])[0]

    def trained(forward: Callable[[], Any], layer: nn.Module) -> Callable[[], Any]:
        return lambda: torch.autograd.grad((forward() * weight).sum(), [x, *layer.parameters()])

    found = {
        "with lengths": trained(lambda: ours(x, lengths=lengths)[0], ours),
        "all steps": trained(lambda: ours(x)[0], ours),
        "masks": trained(masked, ours),
        "torch, packed": trained(packed, theirs),
    }
    for one, other in zip(found["with lengths"](), found["masks"]()):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))
    return found, float(lengths.sum()) / (steps * batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="32x128x256", help="batch x hidden x time")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(chosen.threads)
    batch, size, steps = map(int, chosen.shape.split("x"))
    for kind in KINDS:
        found, share = ways(kind, (batch, size, steps))
        taken: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(chosen.rounds):
            for name, way in found.items():
                way()
                started = time.perf_counter()
                way()
                taken[name].append(time.perf_counter() - started)
        told = ", ".join(f"{name} {statistics.median(times) * 1e3:.1f} ms" for name, times in taken.items())
        print(f"{kind} {chosen.shape}, {chosen.threads} threads, {share:.0%} of the steps: {told}", flush=True)


if __name__ == "__main__":
    main()

"""What this machine can do: bandwidth, arithmetic, and what one operation costs whatever its size. Measured once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch

from gradsmith.lab.process import device

_BYTES = (1 << 14, 1 << 18, 1 << 22, 1 << 25)
_EDGES = (16, 64, 256)
_REPEATS = 7


@dataclass(frozen=True)
class Machine:
    """Seconds, bytes per second and FLOPs per second of this machine, at several sizes."""

    op_s: float  # a pointwise operation on one element, from Python, no graph
    graph_op_s: float  # the same with its part of backward
    run_s: float  # forward and backward of a single smallest operation: less than that no subject takes
    observed_op_s: float  # what the attribution pass sees of such an operation
    setup_context_s: float  # what a setup_context adds to one call of a Function
    bandwidth: tuple[tuple[int, float], ...]  # (bytes, bytes/s) of reading and writing that much
    arithmetic: tuple[tuple[int, float], ...]  # (FLOPs, FLOP/s) of a matrix product of that size

    def seconds(self, bytes_moved: float, flops: float = 0.0) -> float:
        """The least time for one kernel that moves this many bytes and does this arithmetic."""
        moving = bytes_moved / _at(self.bandwidth, bytes_moved) if bytes_moved else 0.0
        computing = flops / _at(self.arithmetic, flops) if flops else 0.0
        return max(moving, computing)

    @property
    def peak_bandwidth(self) -> float:
        return self.bandwidth[-1][1]

    @property
    def peak_arithmetic(self) -> float:
        return self.arithmetic[-1][1]


@cache
def machine() -> Machine:
    """The limits of this machine with the threads torch now uses; takes about 0.2 s, once per process."""
    small = torch.ones(1)
    leaf = torch.ones(1, requires_grad=True)
    one = torch.ones(1)
    add = torch.ops.aten.mul.Tensor
    with torch.no_grad():
        op = _best(lambda: torch.mul(small, small), 200)
        observed = _best(lambda: add(small, small), 200)
    graph = _best(lambda: torch.autograd.grad(leaf * small * small * small * small, leaf, one), 50) / 4
    run = _best(lambda: torch.autograd.grad(leaf * small, leaf, one), 50)
    return Machine(op, graph, run, observed, _setup_context(), _bandwidth(), _arithmetic())


def _bandwidth() -> tuple[tuple[int, float], ...]:
    found = []
    for size in _BYTES:
        source = torch.ones(size // 8)
        target = torch.empty_like(source)
        seconds = _best(lambda a=source, b=target: b.copy_(a), max(1, (1 << 20) // size))  # type: ignore[misc]
        found.append((size, size / seconds))
    return tuple(found)


def _arithmetic() -> tuple[tuple[int, float], ...]:
    found = []
    for edge in _EDGES:
        a = torch.ones(edge, edge)
        flops = 2 * edge**3
        seconds = _best(lambda a=a: a @ a, max(1, (1 << 20) // flops))  # type: ignore[misc]
        found.append((flops, flops / seconds))
    return tuple(found)


def _setup_context() -> float:
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x.view_as(x)

    class Split(torch.autograd.Function):
        @staticmethod
        def forward(x):  # type: ignore[no-untyped-def]
            return x.view_as(x)

        @staticmethod
        def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
            return None

    x = torch.ones(1, requires_grad=True)
    return max(0.0, _best(lambda: Split.apply(x), 50) - _best(lambda: Plain.apply(x), 50))


def _best(action: Callable[[], object], count: int) -> float:
    clock = device.work_clock()
    best = math.inf
    for _ in range(_REPEATS):
        start = clock()
        for _ in range(count):
            action()
        best = min(best, (clock() - start) / count)
    return best


def _at(table: Sequence[tuple[int, float]], size: float) -> float:
    """The rate at this size: between two measured sizes on a logarithmic scale, beyond them the nearest."""
    if size <= table[0][0]:
        return table[0][1]
    for (a, low), (b, high) in pairwise(table):
        if size <= b:
            part = math.log(size / a) / math.log(b / a)
            return float(low * (high / low) ** part)
    return table[-1][1]

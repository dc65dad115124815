"""N operations on parts against one operation on the whole: how long does the whole take, and what foretells it?

Run: python benchmarks/kernels_together.py          (about 30 s)

`gradsmith.profiling.whatif` foretells what a loop costs when its iterations run at once. It has two ways to know: N times the
measured kernel of one iteration (its time less that of a one-element operation), or the machine's limits (bytes over bandwidth,
FLOPs over arithmetic, times what transcendental functions cost). Each row is one operation at one size: the length of its kernel in
prices of a call, and both foretold times over the real one. The last lines give the error of both (median of the factor by which
each is off, whichever way) by length of the kernel: where the measured kernel becomes the better of the two is `_LONG`.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from gradsmith.profiling.machine import Machine, machine
from gradsmith.profiling.whatif import DEAR

PARTS = 16
EDGES = (0, 0.5, 1, 2, 4, 8, 16, 32, math.inf)  # in prices of a call
ROUNDS = 25


@dataclass(frozen=True)
class Case:
    """One operation on `PARTS` parts, and on all of them at once."""

    name: str
    part: Callable[[int], Tensor]
    whole: Callable[[], Tensor]
    bytes: int
    flops: int = 0


@dataclass(frozen=True)
class Row:
    length: float  # of the kernel of one part, in prices of a call
    measured: float  # N kernels over the whole
    limits: float  # the machine's limits over the whole


def cases() -> list[Case]:
    found = []
    for size in (32, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
        x, y = torch.randn(PARTS, size), torch.randn(PARTS, size)
        xs, ys = x.unbind(0), y.unbind(0)
        moved = 4 * x.numel()
        found += [
            Case("mul", lambda i, a=xs, b=ys: a[i] * b[i], lambda a=x, b=y: a * b, 3 * moved),
            Case("tanh", lambda i, a=xs: torch.tanh(a[i]), lambda a=x: torch.tanh(a), 2 * moved),
            Case("exp", lambda i, a=xs: torch.exp(a[i]), lambda a=x: torch.exp(a), 2 * moved),
            Case("sum", lambda i, a=xs: a[i].sum(0), lambda a=x: a.sum(1), moved),
        ]
    for edge in (4, 8, 16, 24, 32, 48, 64, 96, 128):
        a, b = torch.randn(PARTS, edge, edge), torch.randn(PARTS, edge, edge)
        parts, others = a.unbind(0), b.unbind(0)
        wide = a.reshape(-1, edge)
        flops, moved = 2 * PARTS * edge**3, 12 * a.numel()
        found += [
            Case("bmm", lambda i, a=parts, b=others: a[i] @ b[i], lambda a=a, b=b: torch.bmm(a, b), moved, flops),
            Case("mm", lambda i, a=parts, b=others: a[i] @ b[0], lambda a=wide, b=b: a @ b[0], moved, flops),
        ]
    return found


def row(case: Case, limits: Machine) -> Row:
    """Parts and whole in turns; the quickest round of each, since others only ever add."""
    each, once = [], []
    for _ in range(ROUNDS):
        start = time.thread_time_ns()
        for i in range(PARTS):
            case.part(i)
        middle = time.thread_time_ns()
        case.whole()
        each.append((middle - start) / PARTS / 1e9)
        once.append((time.thread_time_ns() - middle) / 1e9)
    kernel = max(1e-9, min(each) - limits.op_s)
    whole = max(1e-9, min(once) - limits.op_s)
    foretold = DEAR.get(case.name, 1.0) * limits.seconds(case.bytes, case.flops)
    return Row(kernel / limits.observed_op_s, PARTS * kernel / whole, foretold / whole)


def main() -> None:
    torch.set_num_threads(1)
    limits = machine()
    print(f"one call {1e6 * limits.op_s:.2f} us, observed {1e6 * limits.observed_op_s:.2f} us")
    print("length of the kernel in calls; foretold over real by the measured kernel, by the limits")
    rows = []
    with torch.no_grad():
        for case in cases():
            rows.append(row(case, limits))
            print(f"{case.name:<5}{rows[-1].length:9.2f}{rows[-1].measured:9.2f}{rows[-1].limits:9.2f}")
    for low, high in pairwise(EDGES):
        mine = [r for r in rows if low <= r.length < high]
        if mine:
            a, b = (statistics.median(_off(getattr(r, name)) for r in mine) for name in ("measured", "limits"))
            print(f"{low:>4} to {high:>4} calls: {len(mine):3} rows, off by {a:5.2f} (measured), {b:5.2f} (limits)")


def _off(ratio: float) -> float:
    return max(ratio, 1 / max(ratio, 1e-9))


if __name__ == "__main__":
    main()

"""Do the ops pay? Eager, torch.compile and ours, interleaved; time of forward and backward, peak and saved memory.

    python benchmarks/ops.py                        # all, 1 and 2 threads: about 6 minutes on an idle machine
    python benchmarks/ops.py --only rms_norm swish  # some
    python benchmarks/ops.py --only swish --keep FILE; python benchmarks/ops.py --show FILE     # piece by piece
    python benchmarks/ops.py --quick                # small shapes, one thread, a minute; goals are not held

Every way has a process of its own, and they take turns: a round is one step of each, and ratios are formed within a round, where
all sides saw the same machine. Goals are held to the medians. In one process a step would find the allocator as its neighbour left
it: a step of 2.5 ms took 15 where it returned 84 to 150 MB that eager had freed. All processes tell glibc to keep what it gets back
(`reuse_freed_pages`), as ours does by itself. Peak is measured apart: the largest resident size that forward and backward
add (VmHWM, reset before).
Saved is what the graph keeps for backward, inputs included. Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from ops_rows import Goal, Row, keep, show
from pages import shown
from priority import real_time
from torch import Tensor, nn
from torch.nn import functional as F

import gradsmith as gs
from gradsmith import ops
from gradsmith.native.memory import reuse_freed_pages

Way = Callable[..., Tensor]


@dataclass
class Case:
    """One op: how else it is written, and the sizes of its inputs."""

    name: str
    eager: Way
    ours: Way
    make: Callable[[int], list[Any]]
    others: dict[str, Way] = field(default_factory=dict)
    compiled: bool = True

    def ways(self) -> dict[str, Way]:
        found: dict[str, Way] = {"eager": self.eager, "ours": self.ours, **self.others}
        if self.compiled:
            found["compile"] = torch.compile(self.eager, dynamic=False)
        return found


def leaf(*shape: int) -> Tensor:
    return torch.randn(shape).requires_grad_()


def _loss(x: Tensor, w: Tensor, t: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(x, w), t)


def torch_chunked(x: Tensor, w: Tensor, t: Tensor) -> Tensor:
    """torch's own, which chunks when it is given options (2.13)."""
    found: Tensor = F.linear_cross_entropy(x, w, t, options=nn.LinearCrossEntropyOptions())
    return found


def lce_inputs(divide: int) -> list[Any]:
    n, d, v = 4096 // divide, 512 // divide, 32000 // divide
    return [leaf(n, d), (torch.randn(v, d) * 0.05).requires_grad_(), torch.randint(0, v, (n,))]


def norm_inputs(divide: int) -> list[Any]:
    n, d = 4096 // divide, 1024 // divide
    return [leaf(n, d), torch.rand(d).add(0.5).requires_grad_(), leaf(d)]


def cases() -> list[Case]:
    return [
        Case("linear_cross_entropy", _loss, lambda x, w, t: ops.linear_cross_entropy(x, w, t), lce_inputs,
             {"torch's chunked": torch_chunked, "ours compiled": torch.compile(lambda x, w, t: ops.linear_cross_entropy(x, w, t), fullgraph=True)}),
        Case("rms_norm", lambda x, w: F.rms_norm(x, (x.shape[1],), w), lambda x, w: ops.rms_norm(x, x.shape[1], w),
             lambda k: [leaf(4096 // k, 1024 // k), leaf(1024 // k)]),
        Case("swish", lambda x, b: x * torch.sigmoid(b * x), ops.swish, lambda k: [leaf(4096 // k, 1024 // k), torch.tensor(1.3, requires_grad=True)]),
        Case("logsumexp", lambda x: torch.logsumexp(x, -1), ops.logsumexp, lambda k: [leaf(512 // k, 32000 // k)]),
        Case("swiglu", lambda a, b: F.silu(a) * b, ops.swiglu, lambda k: [leaf(4096 // k, 1024 // k), leaf(4096 // k, 1024 // k)]),
        Case("layer_norm", lambda x, w, b: F.layer_norm(x, (x.shape[1],), w, b), lambda x, w, b: ops.layer_norm(x, x.shape[1], w, b),
             norm_inputs),
        Case("layer_norm in a block", lambda x, w, b, m: F.linear(F.layer_norm(x + 1, (x.shape[1],), w, b), m),
             lambda x, w, b, m: F.linear(ops.layer_norm(x + 1, x.shape[1], w, b), m), lambda k: [*norm_inputs(k), leaf(8, 1024 // k)]),
        Case("dropout", lambda x: F.dropout(x, 0.1), lambda x: ops.dropout(x, 0.1), lambda k: [leaf(4096 // k, 1024 // k)]),
        Case("linear_relu", lambda x, w, b: F.linear(x, w, b).relu(), ops.linear_relu, lambda k: [leaf(2048 // k, 512 // k), leaf(2048 // k, 512 // k), leaf(2048 // k)]),
        Case("checkpoint", lambda x, w: _block(x, w), lambda x, w: ops.checkpoint(_block, x, w), lambda k: [leaf(2048 // k, 512 // k), (torch.randn(512 // k, 512 // k) * 0.05).requires_grad_()]),
    ]  # fmt: skip


def _block(x: Tensor, w: Tensor) -> Tensor:
    return F.gelu(F.gelu(x @ w) @ w) @ w


def step(way: Way, inputs: list[Any], grad: Tensor | None) -> None:
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    torch.autograd.grad(way(*inputs), wanted, grad)


def take_turns(case: Case, way_name: str, divide: int, threads: int) -> None:
    """In a process of its own: for every line that comes in, one step, and its seconds go out."""
    torch.set_num_threads(threads)
    reuse_freed_pages()
    torch.manual_seed(0)
    inputs, way = case.make(divide), case.ways()[way_name]
    with torch.no_grad():
        grad = torch.randn_like(case.ours(*inputs))
    long = (
        case.name == "linear_cross_entropy" and divide == 1
    )  # seconds per step: what the step before left does not show
    step(way, inputs, grad)
    gc.disable()
    print("ready", flush=True)
    for _ in sys.stdin:
        for _ in range(0 if long else 3):
            step(way, inputs, grad)
        before = time.perf_counter()
        step(way, inputs, grad)
        print(time.perf_counter() - before, flush=True)


_REST_S = (
    0.01  # until threads of OpenMP, which spin for milliseconds after a step, have left the cores to the next process
)


def times(
    case: Case,
    threads: int,
    divide: int,
    rounds: int,
    budget_s: float,
    against: list[str] | None = None,
    priority: int = 0,
) -> dict[str, list[float]]:
    names = [name for name in case.ways() if not against or name in ("ours", *against)]
    workers = {}
    for name in names:
        command = [sys.executable, __file__, "--turns", case.name, name, str(divide), str(threads)]
        workers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        workers[name].stdout.readline()  # type: ignore[union-attr]
    taken: dict[str, list[float]] = {name: [] for name in names}
    started = time.perf_counter()
    with real_time(priority, [worker.pid for worker in workers.values()]):
        for number in range(rounds):
            for name, worker in workers.items():
                assert worker.stdin and worker.stdout
                time.sleep(_REST_S + (taken[name][-1] / 10 if taken[name] else 0))
                worker.stdin.write("go\n")
                taken[name].append(float(worker.stdout.readline()))
            if number >= 4 and time.perf_counter() - started > budget_s:
                break
    for worker in workers.values():
        worker.communicate()
    return taken


def ratio(taken: dict[str, list[float]], against: str) -> float:
    return statistics.median(own / other for own, other in zip(taken["ours"], taken[against]))


def _status(name: str) -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def peak_of(case: Case, way_name: str, divide: int) -> int:
    """In a process of its own: bytes that one forward and backward add at their highest point."""
    torch.manual_seed(0)
    # Small once, so that threads, libraries and kernels are there; with malloc giving memory back at once.
    small = case.make(32)
    way = case.ways()[way_name]
    step(way, small, torch.randn_like(way(*small)))
    inputs = case.make(divide)
    if "compile" in way_name:
        step(way, inputs, torch.randn_like(way(*inputs)))
    out_shape = case.eager(*[t.detach() if isinstance(t, Tensor) else t for t in inputs]).shape
    grad = torch.ones(out_shape)
    gc.collect()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")
    before = _status("VmRSS")
    step(way, inputs, grad)
    return _status("VmHWM") - before


def saved_bytes(way: Way, inputs: list[Any]) -> int:
    """What the graph keeps, each storage once, inputs included; parameters of fewer than 64 elements are not counted."""
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        if t.numel() >= 64:
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = way(*inputs)
        del y
    return sum(kept.values())


def peak(name: str, way: str, divide: int) -> int:
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--peak", name, way, str(divide)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"   peak of {name} {way} not measured: {done.stderr.strip().splitlines()[-1]}")
        return 0
    return int(json.loads(done.stdout.splitlines()[-1]))


def measured(case: Case, threads: int, divide: int, chosen: argparse.Namespace) -> Row:
    taken = times(case, threads, divide, chosen.rounds, chosen.budget, chosen.against, chosen.real_time)
    ratios = {other: ratio(taken, other) for other in taken if other != "ours"}
    peaks: dict[str, int] = {}
    saved: dict[str, int] = {}
    if not chosen.no_peak and threads == 1:
        peaks = {way: peak(case.name, way, divide) for way in case.ways()}
        inputs = case.make(divide)
        saved = {name: saved_bytes(way, inputs) for name, way in (("ours", case.ours), ("eager", case.eager))}
    return Row(case.name, threads, statistics.median(taken["ours"]), ratios, peaks, saved)


def masks() -> list[Goal]:
    x = torch.ones(1 << 20, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t.nbytes), t)[1], lambda t: t):
        ops.dropout(x, 0.5)
    return [Goal("bits saved per element of a dropout mask", 8 * sum(kept) / x.numel(), 1.0)]


class BareScale(torch.autograd.Function):
    """What a user would write: the same style, nothing around it."""

    @staticmethod
    def forward(x: Tensor, scale: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.scale, None


class BareSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        slope = x * s * (1 - s)
        return grad_output * (s + beta * slope), (grad_output * x * slope).sum()


def overhead() -> list[Goal]:
    """Microseconds of forward and backward on 8 elements; bare and ours interleaved."""
    torch.set_num_threads(1)
    x, beta, grad = leaf(8), torch.tensor(1.3, requires_grad=True), torch.ones(8)
    pairs: dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor], list[Tensor]]] = {
        "grad_scale (setup_context)": (lambda: BareScale.apply(x, 0.5), lambda: ops.grad_scale(x, 0.5), [x]),
        "swish (ctx in forward)": (lambda: BareSwish.apply(x, beta), lambda: ops.swish(x, beta), [x, beta]),
    }
    goals = []
    for name, (bare, own, wanted) in pairs.items():
        rounds: list[tuple[float, float]] = []
        for _ in range(30):
            pair = []
            for way in (bare, own):
                started = time.perf_counter()
                for _ in range(200):
                    torch.autograd.grad(way(), wanted, grad)
                pair.append((time.perf_counter() - started) / 200 * 1e6)
            rounds.append((pair[0], pair[1]))
        found = statistics.median(b / a for a, b in rounds)
        print(
            f"overhead {name}: bare {statistics.median(a for a, _ in rounds):.1f} us, ours {statistics.median(b for _, b in rounds):.1f} us"
        )
        goals.append(Goal(f"call overhead of {name}", found, 1.2))
    return goals


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(500, 1000), nn.Tanh(), nn.Linear(1000, 499), nn.Tanh(), nn.Linear(499, 1))


def hvp_peak(what: str) -> int:
    """Bytes that one gradient, or one Hessian-vector product, adds for a model of 1e6 parameters."""
    torch.manual_seed(0)
    net, x = model(), torch.randn(32, 500)
    v = {name: torch.randn_like(p) for name, p in net.named_parameters()}

    def run(module: nn.Module, data: Tensor, along: dict[str, Tensor]) -> None:
        if what == "gradient":
            torch.autograd.grad(module(data).square().mean(), list(module.parameters()))
        else:
            gs.hvp(module, data, along, loss=lambda y: y.square().mean())

    tiny = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    run(tiny, torch.randn(2, 3), {name: torch.randn_like(p) for name, p in tiny.named_parameters()})
    gc.collect()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")
    before = _status("VmRSS")
    run(net, x, v)
    return _status("VmHWM") - before


def hvp() -> list[Goal]:
    one, product = peak("hvp", "gradient", 1), peak("hvp", "hvp", 1)
    print(
        f"hvp of {sum(p.numel() for p in model().parameters())} parameters: one gradient {one / 1e6:.1f} MB, hvp {product / 1e6:.1f} MB"
    )
    return [Goal("hvp memory over one gradient", product / max(one, 1), 4.0)]


def main() -> int:
    names = [case.name for case in cases()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*names, "masks", "overhead", "hvp"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--real-time", type=int, default=0, metavar="PRIORITY", help="of the rounds, beside other programs"
    )
    parser.add_argument(
        "--against", nargs="+", help="only these ways besides ours: a short run where the machine is shared"
    )
    parser.add_argument("--no-peak", action="store_true")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds per case after five rounds")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", metavar="FILE", help="append what was measured")
    parser.add_argument("--show", metavar="FILE", help="the table and the goals of what was kept; measure nothing")
    parser.add_argument("--page", metavar="FILE", help="put the table that --show prints on this page")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--turns", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.peak:
        name, way, divide = chosen.peak
        found = (
            hvp_peak(way) if name == "hvp" else peak_of(next(c for c in cases() if c.name == name), way, int(divide))
        )
        print(json.dumps(found))
        return 0
    if chosen.turns:
        name, way, divide, threads = chosen.turns
        take_turns(next(c for c in cases() if c.name == name), way, int(divide), int(threads))
        return 0
    wanted = chosen.only or [*names, "masks", "overhead", "hvp"]
    divide = 4 if chosen.quick else 1
    goals: list[Goal] = shown(show, chosen.show, chosen.page, "ops") if chosen.show else []
    for case in [] if chosen.show else cases():
        for threads in ([1] if chosen.quick else chosen.threads) if case.name in wanted else []:
            row = measured(case, threads, divide, chosen)
            print(row, flush=True)
            keep(chosen.keep, row)
            goals += row.goals()
    for extra in () if chosen.show else (masks, overhead, hvp):
        for goal in extra() if extra.__name__ in wanted else []:
            keep(chosen.keep, goal)
            goals.append(goal)
    print(*goals, sep="\n")
    missed = [goal for goal in goals if goal.found > goal.most]
    print(f"{len(goals) - len(missed)} of {len(goals)} goals reached")
    return 0 if chosen.quick else int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

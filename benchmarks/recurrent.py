"""How fast is a user's own cell? Forward and backward, interleaved rounds, medians with quartiles, and every goal.

    python benchmarks/recurrent.py            # the full table, about 20 minutes on an idle machine
    python benchmarks/recurrent.py --quick    # small shapes, one thread, about a minute
    python benchmarks/recurrent.py --cells rnn --shapes 8x64x256 --threads 2 --keep FILE    # one case, kept
    python benchmarks/recurrent.py --show FILE                                   # the table and goals of all that was kept
    python benchmarks/recurrent.py --show benchmarks/evidence/recurrent.jsonl --page docs/recurrent.md

Every ratio is formed within a round, where both sides saw the same machine; goals are held to the lower quartile. In a round
each side is called twice. Goals are held to the second call, which finds in the caches what the first one left, as a training
step does; the ratio of the first calls, which others ran before, is printed beside it ("first ...").
JAX is measured with `--jax PYTHON`, an interpreter that has it (`python -m venv /tmp/jax; /tmp/jax/bin/pip install jax`):
both with the product of x inside the scan and hoisted by hand, of which the better one counts. torch.compile unrolls the
loop, so it is measured at 64 steps (`--only compiled`). "saved" is what the graph holds for backward besides inputs and
parameters. Planning is timed in processes of their own: "new" with an empty cache, "cached" in a second process that finds
the first one's plans on disk. Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from pages import shown
from priority import real_time
from recurrent_cases import (
    ALL_SHAPES,
    CELLS,
    LARGE,
    LAYERS,
    READY,
    SHAPES,
    SHORT,
    Case,
    cell_case,
    linear_case,
    saved_bytes,
)
from recurrent_compiled import cpu_seconds
from recurrent_peers import IN_JAX, Compiled, Jax, settle
from recurrent_rows import Goal, Row, keep, show
from torch import Tensor

from gradsmith.recurrent import plan, scan

CLOCK = time.perf_counter


def twice(case: Case, way: str, weight: Tensor) -> tuple[float, float]:
    """Seconds of two calls in a row: before the first, others have used the caches; the second finds what the first left."""
    taken = []
    for _ in range(2):
        started = CLOCK()
        y = case.ways[way](case.x)
        torch.autograd.grad(y, [case.x, *case.parameters[way]], weight, allow_unused=True)
        taken.append(CLOCK() - started)
        del y
    return taken[0], taken[1]


def measure(case: Case, rounds: int, fewest: int, budget_s: float, priority: int = 0) -> None:
    weight = torch.randn_like(case.ways["gradsmith"](case.x))
    own = {way: functools.partial(twice, case, way, weight) for way in case.ways}
    # Ways in other processes stand apart, so that none of them finds its process warm from the one before.
    ahead, behind = list(case.elsewhere)[1:], list(case.elsewhere)[:1]
    order = ["gradsmith", *ahead, *[way for way in own if way != "gradsmith"], *behind]
    sides = {way: (own | case.elsewhere)[way] for way in order}
    for way in case.ways:
        twice(case, way, weight)
    case.seconds, case.first_seconds = {way: [] for way in sides}, {way: [] for way in sides}
    started, first, second = time.perf_counter(), 0.0, 0.0
    gc.disable()
    with real_time(priority, case.processes):
        for number in range(rounds):
            for way, ask in sides.items():
                settle(first + second)
                first, second = ask()
                case.first_seconds[way].append(first)
                case.seconds[way].append(second)
            if number + 1 >= fewest and time.perf_counter() - started > budget_s:
                break
    gc.enable()


def memory_goals(shapes: list[str]) -> list[Goal]:
    goals = []
    for name in READY:
        for shape in shapes:
            case = cell_case(name, *SHAPES[shape])
            ours, loop = saved_bytes(case, "gradsmith"), saved_bytes(case, "unbind")
            most = 0.75 if name in ("layer-norm-lstm", "lif", "alif") else 1.0
            # To two decimals: the engine has a copy of the first state in front of each time course, 1/T more.
            goals.append(Goal(f"{name} {shape} saved over the loop's", round(ours / loop, 2), most, most=True))
            line = f"saved {name:16} {shape:11} {ours / 1e6:8.2f} MB = {ours / loop:.3f}x the loop"
            if name == "lstm":
                theirs = saved_bytes(case, "nn.LSTM")
                goals.append(Goal(f"{name} {shape} saved over nn.LSTM's", ours / theirs, 0.5, most=True))
                line += f", {ours / theirs:.3f}x nn.LSTM"
            print(line, flush=True)
    return goals


def plan_all() -> dict[str, list[float]]:
    """In a process of its own: seconds until each cell has run once, and once more."""
    torch.set_num_threads(1)
    gc.disable()  # a full collection of torch's own objects takes 80 ms, and would hit whichever cell is sixth
    taken = {}
    for name, make in CELLS.items():
        torch.manual_seed(0)
        cell = make(48, 48)
        x, state = torch.randn(8, 4, 48, requires_grad=True), cell.initial_state(4)
        times = []
        for _ in range(2):
            started = CLOCK()
            scan(cell, x, state)
            times.append(CLOCK() - started)
        assert plan(cell, x, state).backend == "c", name
        taken[name] = times
    return taken


def planning_goals(repeats: int) -> list[Goal]:
    def child(folder: str, warm: bool) -> dict[str, list[float]]:
        command = [sys.executable, __file__, "--plan-all", *(["--warm"] if warm else [])]
        command += ["--cpu-time"] if CLOCK is time.process_time else []
        environment = {**os.environ, "GRADSMITH_CACHE_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
        return found

    new: list[dict[str, list[float]]] = []
    cached: list[dict[str, list[float]]] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            new.append(child(folder, warm=True))
            cached.append(child(folder, warm=False))
    goals = []
    for name in CELLS:
        first = statistics.median(run[name][0] for run in new)
        disk = statistics.median(run[name][0] for run in cached)
        again = statistics.median(run[name][1] for run in cached)
        print(
            f"planning {name:16} new {first:.2f} s, cached in a new process {disk * 1e3:.1f} ms,"
            f" in the same process {again * 1e3:.2f} ms (each with one forward)",
            flush=True,
        )
        goals.append(Goal(f"{name} planned anew, seconds", first, 1.5, most=True))
        goals.append(Goal(f"{name} planned from the cache, milliseconds", disk * 1e3, 20, most=True))
    print(f"first plan of a process, with the import of torch's tracer: {new[0]['tracer'][0]:.2f} s", flush=True)
    return goals


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small shapes, one thread, few rounds")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--real-time", type=int, default=0, metavar="PRIORITY", help="of the rounds, beside other programs"
    )
    parser.add_argument("--budget", type=float, default=7.0, help="seconds per case after the fewest rounds")
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--shapes", nargs="+", default=[*SHAPES, *LARGE], choices=[*SHAPES, *LARGE])
    parser.add_argument("--ways", nargs="+", help="only these alternatives (x[t], unbind, nn.LSTM, jax, ...)")
    parser.add_argument("--only", choices=["cells", "linear", "compiled", "planning", "memory"])
    parser.add_argument(
        "--jax", metavar="PYTHON", default=os.environ.get("JAX_PYTHON"), help="an interpreter that has JAX"
    )
    parser.add_argument("--compile-cache", metavar="FOLDER", help="where torch.compile keeps what it compiled")
    parser.add_argument("--keep", metavar="FILE", help="append what was measured")
    parser.add_argument(
        "--show", metavar="FILE", help="print the table and the goals of what was kept, measure nothing"
    )
    parser.add_argument("--page", metavar="FILE", help="put the table that --show prints on this page")
    parser.add_argument("--cpu-time", action="store_true", help="CPU seconds, for one thread on a busy machine")
    parser.add_argument("--plan-all", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.threads, chosen.rounds, chosen.budget = [1], 5, 1.0
        chosen.shapes = ["8x64x256", "1x32x1000"]
    return chosen


def planned_anew(name: str, shape: tuple[int, int, int], clock: Callable[[], float]) -> float:
    """Seconds from a cell that nobody has seen to its first result, without the calls themselves and the tracer's import."""
    steps, batch, size = shape
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("GRADSMITH_CACHE_DIR")
        os.environ["GRADSMITH_CACHE_DIR"] = folder
        try:
            # In the empty cache: a plan found on disk would leave the tracer's import to the one that is timed.
            plan(lambda x, h: (x + h, x + h), torch.ones(2, 2, 2), torch.zeros(2, 2))
            cell = CELLS[name](size, size)
            started = clock()
            plan(cell, torch.randn(steps, batch, size, requires_grad=True), cell.initial_state(batch))
            return clock() - started
        finally:
            os.environ.pop("GRADSMITH_CACHE_DIR")
            if before is not None:
                os.environ["GRADSMITH_CACHE_DIR"] = before


def cell_row(name: str, shape: str, threads: int, chosen: argparse.Namespace) -> Row:
    compile_s: dict[str, float] = {}
    if chosen.jax and shape in SHAPES and name in IN_JAX and threads == 1:
        with real_time(chosen.real_time, []):
            compile_s["gradsmith"] = planned_anew(name, SHAPES[shape], CLOCK)
    case = cell_case(name, *ALL_SHAPES[shape])
    if shape not in SHAPES:
        case.ways = {way: run for way, run in case.ways.items() if way == "gradsmith" or way.startswith("nn.")}
    if chosen.ways:
        case.ways = {way: run for way, run in case.ways.items() if way in ("gradsmith", *chosen.ways)}
    jax = None
    if chosen.jax and shape in SHAPES and name in IN_JAX and (not chosen.ways or "jax" in chosen.ways):
        jax = Jax(chosen.jax, threads)
        with real_time(chosen.real_time, [jax.worker.process.pid]):
            taken = jax.prepare(name, case)
        compile_s |= {"jax": taken} if threads == 1 else {}
        case.processes.append(jax.worker.process.pid)
        for way in ("plain", "hoisted"):
            case.elsewhere[f"jax {way}"] = lambda jax=jax, way=way: jax.twice(way)  # type: ignore[misc]
    measure(case, chosen.rounds, 5 if threads == 1 else 3, chosen.budget, chosen.real_time)
    if jax is not None:
        jax.worker.close()
    return Row.of(name, shape, threads, case, compile_s if "jax" in compile_s else {})


def compiled_row(name: str, shape: str, threads: int, chosen: argparse.Namespace) -> Row:
    """torch.compile against the same cell at 64 steps; `--compile-cache` keeps what Inductor compiled for another run.

    Compiling takes a minute and may run beside other work, so both sides count CPU seconds, with those of their C compilers.
    """
    planning = planned_anew(name, SHORT[shape], cpu_seconds)
    case = cell_case(name, *SHORT[shape])
    case.ways = {"gradsmith": case.ways["gradsmith"]}
    with tempfile.TemporaryDirectory() as folder:
        cache = chosen.compile_cache or folder
        peer = Compiled(threads, cache)
        note = os.path.join(cache, f"{name}_{shape}_seconds.json")
        taken = peer.prepare(name, SHORT[shape])
        if not os.path.exists(note):
            with open(note, "w") as out:
                json.dump(taken, out)
        with open(note) as known:
            taken = json.load(known)  # of the first process: later ones only trace
        case.elsewhere["torch.compile"] = peer.twice
        case.processes.append(peer.worker.process.pid)
        peer.twice()
        measure(case, chosen.rounds, 5, chosen.budget, chosen.real_time)
        peer.worker.close()
    return Row.of(name, shape, threads, case, {"gradsmith": planning, "torch.compile": taken})


def speed(chosen: argparse.Namespace) -> list[Row]:
    print("speed of gradsmith over others: median [quartiles]; shapes are batch x hidden x time", flush=True)
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        print(row, flush=True)
        if chosen.keep:
            keep(chosen.keep, row)

    for threads in chosen.threads:
        torch.set_num_threads(threads)
        for name in chosen.cells if chosen.only in (None, "cells") else []:
            for shape in chosen.shapes:
                if shape in SHAPES or (shape in LARGE and name in LAYERS):
                    add(cell_row(name, shape, threads, chosen))
        if chosen.only in (None, "linear"):
            case = linear_case()
            measure(case, chosen.rounds, 5, chosen.budget, chosen.real_time)
            add(Row.of("linear recurrence", "4x64x4096", threads, case, {}))
        for name in chosen.cells if chosen.only == "compiled" else []:
            for shape in chosen.shapes:
                short = shape.rpartition("x")[0] + "x64"
                if short in SHORT and name in IN_JAX:
                    add(compiled_row(name, short, threads, chosen))
    torch.set_num_threads(1)
    return rows


def main() -> int:
    global CLOCK
    chosen = arguments()
    if chosen.cpu_time:
        CLOCK = time.process_time
    if chosen.plan_all:
        tracer: Any = 0.0
        if chosen.warm:
            started = CLOCK()
            plan(lambda x, h: (x + h, x + h), torch.ones(2, 2, 2), torch.zeros(2, 2))
            tracer = CLOCK() - started
        print(json.dumps({**plan_all(), "tracer": [tracer]}))
        return 0
    rows = shown(show, chosen.show, chosen.page, "recurrent") if chosen.show else []
    if not chosen.show and chosen.only in (None, "cells", "linear", "compiled"):
        rows = speed(chosen)
    goals = [goal for row in rows for goal in row.goals()]
    if chosen.show:
        chosen.only = "shown"
    if chosen.only in (None, "memory"):
        goals += memory_goals([shape for shape in chosen.shapes if shape in SHAPES])
    if chosen.only in (None, "planning"):
        goals += planning_goals(1 if chosen.quick else 3)
    missed = [goal for goal in goals if not goal.reached]
    print(
        *(missed if chosen.show else goals), sep="\n"
    )  # a table of all rows leaves no room for all goals in docs/evidence.md
    print(f"{len(goals) - len(missed)} of {len(goals)} goals reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

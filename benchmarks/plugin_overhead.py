"""What `pytest --gradsmith` adds to a project of 200 tests with 10 Functions, against the checks themselves.

Run: python benchmarks/plugin_overhead.py [rounds, 5 unless told]      (exit status 1 when the goal is missed)

The project is generated. Every round runs seven processes in a row, so that what else the machine does touches all of them:
  plain     200 tests that call 10 Functions, without the option
  checked   the same with --gradsmith
  checks    no pytest: the same 10 classes through gs.check, one input of the same shape each; what this takes more than
            `loaded`, a process that imports torch and the project and ends
  none      200 tests that import the Functions and torch but call none, without the option
  watched   the same with --gradsmith
  idle      no pytest: see below
Goals: checked - plain - checks is not above zero, and watched - none is zero. Both differences are taken round by round, and
stand with their quartiles; a goal is missed when even the lower quartile is above zero. Processor seconds of the process and
its children; wall seconds beside.

Whole processes differ by more than watching costs, so that is measured on its own, too: `idle` is what a process in which torch
and the Functions are loaded spends on loading gradsmith, the recorder and on starting and stopping it.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

FUNCTION = """
class Power{i}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** {n}
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return {n} * x ** {m} * grad_output
"""
TESTS = """
import pytest, torch, ops

@pytest.mark.parametrize("n", range(20))
@pytest.mark.parametrize("i", range(10))
def test_power(i, n):
    x = torch.randn(4, 3, requires_grad=True)
    y = {call}
    assert y.shape == x.shape
"""
LOADED = """
import torch, ops
"""
CHECKS = """
import torch, ops
import gradsmith as gs
for i in range(10):
    assert gs.check(getattr(ops, f"Power{i}"), torch.randn(4, 3, requires_grad=True)).ok
"""
IDLE = """
import time, torch, ops
cpu, wall = time.process_time(), time.perf_counter()
from gradsmith.recording import record
with record() as tape:
    pass
assert not tape.functions
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


@dataclass(frozen=True)
class Seconds:
    cpu: float
    wall: float


def main() -> int:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    seen: dict[str, list[Seconds]] = {
        name: [] for name in ("plain", "checked", "loaded", "with checks", "none", "watched", "idle")
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        functions = [FUNCTION.format(i=i, n=i + 2, m=i + 1) for i in range(10)]
        (root / "ops.py").write_text("import torch\n" + "".join(functions))
        (root / "loaded.py").write_text(LOADED)
        (root / "checks.py").write_text(CHECKS)
        (root / "idle.py").write_text(IDLE)
        (root / "test_calls.py").write_text(TESTS.format(call='getattr(ops, f"Power{i}").apply(x)'))
        (root / "test_none.py").write_text(TESTS.format(call="x ** (i + 2)"))
        for number in range(rounds + 1):
            now = {
                "plain": _pytest(root, "test_calls.py"),
                "checked": _pytest(root, "test_calls.py", "--gradsmith"),
                "loaded": _run(root, "loaded.py"),
                "with checks": _run(root, "checks.py"),
                "none": _pytest(root, "test_none.py"),
                "watched": _pytest(root, "test_none.py", "--gradsmith"),
                "idle": _told(root, "idle.py"),
            }
            for name, seconds in now.items() if number else ():  # the first round fills the disk's cache
                seen[name].append(seconds)
    reached, _ = _judged(seen, "cpu"), _judged(seen, "wall")
    print(f"goal (processor time): {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


def _judged(seen: dict[str, list[Seconds]], clock: str) -> bool:
    times = {name: [getattr(s, clock) for s in rows] for name, rows in seen.items()}
    middle = {name: statistics.median(row) for name, row in times.items()}
    added = [b - a for a, b in zip(times["plain"], times["checked"])]
    checks = [b - a for a, b in zip(times["loaded"], times["with checks"])]
    excess = [a - c for a, c in zip(added, checks)]
    idle = [b - a for a, b in zip(times["none"], times["watched"])]
    print(f"{clock} seconds, medians of {len(added)} rounds (quartiles)")
    print(f"  10 Functions: {middle['plain']:.3f}; --gradsmith {middle['checked']:.3f}, adds {_spread(added)}")
    print(f"  the checks alone: {_spread(checks)}; more than these: {_spread(excess)}")
    print(f"  no Function runs: {middle['none']:.3f}; --gradsmith {middle['watched']:.3f}, adds {_spread(idle)}")
    print(f"  of that, loading and running the recorder: {_spread(times['idle'])}")
    return _quartiles(excess)[0] <= 0 and _quartiles(idle)[0] <= 0


def _spread(row: list[float]) -> str:
    low, middle, high = _quartiles(row)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def _quartiles(row: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(row, n=4) if len(row) > 1 else (row[0],) * 3
    return low, middle, high


def _pytest(root: Path, *args: str) -> Seconds:
    return _run(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args)


def _run(root: Path, *args: str) -> Seconds:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *args], cwd=root, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    return Seconds(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def _told(root: Path, script: str) -> Seconds:
    done = subprocess.run([sys.executable, script], cwd=root, capture_output=True, text=True, check=True)
    cpu, wall = done.stdout.split()
    return Seconds(float(cpu), float(wall))


if __name__ == "__main__":
    sys.exit(main())

"""What `pytest --gradsmith` adds to a project of 200 tests with 10 Functions, against the checks themselves.

Run: python benchmarks/plugin_overhead.py [rounds, 5 unless told]      (exit status 1 when the goal is missed)

The project is generated. Every round runs five processes in a row, so that what else the machine does touches all of them:
  plain     200 tests that call 10 Functions, without the option
  checked   the same with --gradsmith
  checks    no pytest: the same 10 classes through gs.check, one input of the same shape each; its time is counted from
            before `import gradsmith` until the last verdict, torch and the project being imported already
  none      200 tests that import the Functions and torch but call none, without the option
  watched   the same with --gradsmith
Goals: median(checked - plain) <= median(checks), and median(watched - none) is zero, both up to the noise, which is the
distance of the quartiles of `plain` and of `none`. Processor seconds of the process and its children; wall seconds beside.
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
CHECKS = """
import time, torch, ops
cpu, wall = time.process_time(), time.perf_counter()
import gradsmith as gs
for i in range(10):
    assert gs.check(getattr(ops, f"Power{i}"), torch.randn(4, 3, requires_grad=True)).ok
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


@dataclass(frozen=True)
class Seconds:
    cpu: float
    wall: float


def main() -> int:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    seen: dict[str, list[Seconds]] = {name: [] for name in ("plain", "checked", "checks", "none", "watched")}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        functions = [FUNCTION.format(i=i, n=i + 2, m=i + 1) for i in range(10)]
        (root / "ops.py").write_text("import torch\n" + "".join(functions))
        (root / "checks.py").write_text(CHECKS)
        (root / "test_calls.py").write_text(TESTS.format(call='getattr(ops, f"Power{i}").apply(x)'))
        (root / "test_none.py").write_text(TESTS.format(call="x ** (i + 2)"))
        for number in range(rounds + 1):
            now = {
                "plain": _pytest(root, "test_calls.py"),
                "checked": _pytest(root, "test_calls.py", "--gradsmith"),
                "checks": _checks(root),
                "none": _pytest(root, "test_none.py"),
                "watched": _pytest(root, "test_none.py", "--gradsmith"),
            }
            for name, seconds in now.items() if number else ():  # the first round fills the disk's cache
                seen[name].append(seconds)
    reached, _ = _judged(seen, "cpu"), _judged(seen, "wall")
    print(f"goal (processor time): {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


def _judged(seen: dict[str, list[Seconds]], clock: str) -> bool:
    times = {name: [getattr(s, clock) for s in rows] for name, rows in seen.items()}
    middle = {name: statistics.median(row) for name, row in times.items()}
    added = statistics.median(b - a for a, b in zip(times["plain"], times["checked"]))
    idle = statistics.median(b - a for a, b in zip(times["none"], times["watched"]))
    print(f"{clock} seconds, medians of {len(times['plain'])} rounds")
    print(f"  10 Functions: {middle['plain']:.3f}; --gradsmith {middle['checked']:.3f}, adds {added:.3f}")
    print(f"  the checks alone: {middle['checks']:.3f}; noise {_noise(times['plain']):.3f}")
    print(f"  no Function runs: {middle['none']:.3f}; --gradsmith {middle['watched']:.3f}, adds {idle:.3f}")
    print(f"  noise {_noise(times['none']):.3f}")
    return added <= middle["checks"] + _noise(times["plain"]) and idle <= _noise(times["none"])


def _noise(row: list[float]) -> float:
    low, _, high = statistics.quantiles(row, n=4) if len(row) > 1 else (row[0],) * 3
    return high - low


def _pytest(root: Path, *args: str) -> Seconds:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    return Seconds(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def _checks(root: Path) -> Seconds:
    done = subprocess.run([sys.executable, "checks.py"], cwd=root, capture_output=True, text=True, check=True)
    cpu, wall = done.stdout.split()
    return Seconds(float(cpu), float(wall))


if __name__ == "__main__":
    sys.exit(main())

"""What `pytest --gradsmith` adds to a project of 200 tests with 10 Functions, against the checks themselves.

Run: python benchmarks/plugin_overhead.py
The project is generated. "checks" is the time of the same 10 checks on the same inputs without pytest, with importing gradsmith.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
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
ALONE = """
import time, torch, ops
start = time.process_time()
import gradsmith as gs, gradsmith.inputs.recorded
with gs.record() as tape:
    for i in range(10):
        getattr(ops, f"Power{i}").apply(torch.randn(4, 3, requires_grad=True))
tape.check()
print(time.process_time() - start)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        functions = [FUNCTION.format(i=i, n=i + 2, m=i + 1) for i in range(10)]
        (root / "ops.py").write_text("import torch\n" + "".join(functions))
        (root / "alone.py").write_text(ALONE)
        checks = float(_run(root, "alone.py")[1])
        (root / "test_ops.py").write_text(TESTS.format(call='getattr(ops, f"Power{i}").apply(x)'))
        plain, checked = (_run(root, "-m", "pytest", "-q", *option)[0] for option in ((), ("--gradsmith",)))
        (root / "test_ops.py").write_text(TESTS.format(call="x ** (i + 2)"))
        none, watched = (_run(root, "-m", "pytest", "-q", *option)[0] for option in ((), ("--gradsmith",)))
    print(f"200 tests, 10 Functions: {plain:.2f} s; --gradsmith {checked:.2f} s, adds {checked - plain:.2f} s")
    print(f"the 10 checks alone: {checks:.2f} s")
    print(f"200 tests, no Function runs: {none:.2f} s; --gradsmith {watched:.2f} s, adds {watched - none:.2f} s")


def _run(root: Path, *args: str) -> tuple[float, str]:
    """CPU seconds of the process (a busy machine stretches the wall clock, not these), and the last line it said."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *args], cwd=root, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode in (0, 1), done.stderr
    return min(used, time.perf_counter() - start), (done.stdout.strip().splitlines() or [""])[-1]


if __name__ == "__main__":
    main()

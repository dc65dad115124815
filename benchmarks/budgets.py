"""What record and the pytest plugin add: a training script of 20 steps, two suites of 7 tests of iterative solvers. The goal: 1.5x + 30 s.

The second suite has up to 140,000 steps in one forward: there a single run under a tape can take more than a whole share.

python benchmarks/budgets.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARE, FREE = 1.5, 30.0
OPS = '''import torch


class Solve(torch.autograd.Function):
    """A linear system by Jacobi's iteration; {name}."""

    @staticmethod
    def forward(ctx, a, b):
        d = a.diagonal()
        x = b / d
        for _ in range({steps}):
            x = x + (b - a @ x) / d
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        a, x = ctx.saved_tensors
        v = torch.linalg.solve(a.T, grad_output)
        return -torch.outer(v, x), v
'''
TEST = """import torch
from solver{n} import Solve


def test_{n}():
    torch.manual_seed(0)
    a = (torch.randn(24, 24, dtype=torch.float64) / 24 + 4 * torch.eye(24, dtype=torch.float64)).requires_grad_()
    b = torch.randn(24, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        Solve.apply(a, b).sum().backward()
"""
TRAIN = """import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(256, 512), torch.nn.Linear(512, 10)

    def forward(self, x):
        return self.second(Swish.apply(self.first(x)))


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    x, y = torch.randn(512, 256), torch.randint(0, 10, (512,))
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "train.py").write_text(TRAIN)
        for n in range(7):
            (project / f"solver{n}.py").write_text(OPS.format(name=f"number {n}", steps=200 * (n + 1)))
            (project / f"test_solver{n}.py").write_text(TEST.format(n=n))
        plugin = ["-m", "pytest", "-q"], ["-m", "pytest", "-q", "--gradsmith"]
        kept = [
            _compared("record", project, ["train.py"], ["-m", "gradsmith", "record", "train.py"]),
            _compared("plugin", project, *plugin),
        ]
        for n in range(7):
            (project / f"solver{n}.py").write_text(OPS.format(name=f"number {n}", steps=20_000 * (n + 1)))
        kept.append(_compared("plugin, long loops", project, *plugin))
    return 0 if all(kept) else 1


def _compared(name: str, project: Path, alone: list[str], with_us: list[str]) -> bool:
    plain, _ = _run(project, alone)
    seconds, said = _run(project, with_us)
    allowed = SHARE * plain + FREE
    told = [line.strip() for line in said.splitlines() if "that checks may take" in line or "verified" in line]
    print(f"{name}: {plain:.1f} s alone, {seconds:.1f} s with checks, allowed {allowed:.1f} s")
    for line in told[-3:]:
        print(f"  {line}")
    return seconds <= allowed


def _run(project: Path, words: list[str]) -> tuple[float, str]:
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(project / ".cache"), "COLUMNS": "200"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    return time.perf_counter() - start, done.stdout


if __name__ == "__main__":
    sys.exit(main())

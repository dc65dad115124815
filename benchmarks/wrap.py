"""The figures of `gs.wrap` and `gs.implicit`: overhead, workers, accuracy, honesty of the stated error, implicit gradients.

Run: python benchmarks/wrap.py [overhead] [workers] [complex] [stated] [implicit]

`stated` draws 30 functions with known derivatives by seed (`wrap_functions.py`), measures `quality` of each by the method
"auto" and by "central", and compares the stated error with the true one (another draw of inputs: WRAP_SEED=1). Errors below the rounding of the reference (4 eps of
the gradient) count as that rounding.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

from wrap_functions import Case, cases

import gradsmith as gs

SEED = int(os.environ.get("WRAP_SEED", "0"))  # of the inputs
EPS = float(np.finfo(np.float64).eps)


def overhead() -> None:
    """A wrapped NumPy call against the bare one, on 1e4 elements, in interleaved rounds."""
    x = torch.rand(10_000, dtype=torch.float64)
    needing = x.clone().requires_grad_()
    array = x.numpy()
    wrapped = gs.wrap(np.sqrt)
    wrapped(needing)
    bare, plain, with_grad = [], [], []
    for _ in range(15):
        bare.append(_per_call(lambda: np.sqrt(array)))
        plain.append(_per_call(lambda: wrapped(x)))
        with_grad.append(_per_call(lambda: wrapped(needing)))
    for name, times in (("without a graph", plain), ("with a graph", with_grad)):
        over = sorted(one - other for one, other in zip(times, bare))
        spread = f"{over[0]:.1f} to {over[-1]:.1f} us, median {over[7]:.1f} us over 15 rounds"
        print(f"overhead {name}: +{min(times) - min(bare):.1f} us on {min(bare):.1f} us at best ({spread})")


def _per_call(call: Callable[[], Any], times: int = 300) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times * 1e6


def busy(x: Any) -> Any:
    """About 10 ms of work."""
    end = time.perf_counter() + 0.010
    while time.perf_counter() < end:
        np.abs(x).sum()
    return np.abs(x) ** 2


def workers() -> None:
    """One gradient by central differences of 64 inputs, with one worker and with two, in interleaved rounds."""
    wrapped = {number: gs.wrap(busy, method="central", workers=number) for number in (1, 2)}
    x = torch.rand(64, dtype=torch.float64).add(0.5).requires_grad_()
    took: dict[int, list[float]] = {1: [], 2: []}
    for one in wrapped.values():
        one(x).sum().backward()
    for _ in range(5):
        for number, one in wrapped.items():
            start = time.perf_counter()
            one(x).sum().backward()
            took[number].append(time.perf_counter() - start)
    for one in wrapped.values():
        one.close()
    best = {number: min(times) for number, times in took.items()}
    ratios = sorted(one / two for one, two in zip(took[1], took[2]))
    spread = f"{ratios[0]:.2f}x to {ratios[-1]:.2f}x, median {ratios[2]:.2f}x over 5 rounds"
    print(f"workers: {best[1]:.2f} s with one, {best[2]:.2f} s with two: {best[1] / best[2]:.2f}x at best ({spread})")


def complex_step() -> None:
    """The error of the complex step on the analytic functions of the set."""
    worst = 0.0
    for case in cases():
        if case.analytic:
            true, _ = _errors(case, "complex-step")
            worst = max(worst, true)
    print(f"complex-step: largest error {worst:.1e} over {sum(c.analytic for c in cases())} analytic functions")


def stated() -> None:
    """The stated error against the true one."""
    for method in ("auto", "central"):
        holds = close = 0
        for case in cases(SEED):
            true, said = _errors(case, method)
            ratio = said / max(true, 4 * EPS)
            holds += said >= true
            close += said >= true and ratio <= 10
            mark = "" if said >= true and ratio <= 10 else "   <-- " + ("too small" if said < true else "wide")
            print(f"  {method:8} {case.name:28} true {true:.1e}  stated {said:.1e}  {ratio:7.1f}x{mark}")
        print(f"stated, {method}: bound holds for {holds} of {len(cases())}, within 10x for {close}")


def _errors(case: Case, method: str) -> tuple[float, float]:
    """(true, stated) relative error of the gradient that backward gives."""
    torch.manual_seed(0)
    wrapped = gs.wrap(case.fresh(), method=method, accept_error=True, name=case.name)
    x = torch.from_numpy(case.x).requires_grad_()
    y = wrapped(x)
    v = torch.from_numpy(np.random.default_rng(1).standard_normal(tuple(y.shape)))
    y.backward(v)
    assert x.grad is not None and wrapped.statement is not None
    truth = case.vjp(case.x.astype(np.longdouble), v.numpy().astype(np.longdouble)).astype(np.float64)
    return float(np.linalg.norm(x.grad.numpy() - truth) / np.linalg.norm(truth)), wrapped.statement.error


def implicit() -> None:
    """A root of 200 unknowns against the analytic gradient; a matrix-free one of 20,000 in a process of its own."""
    n = 200
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(n, n, generator=generator, dtype=torch.float64) / n**0.5 + 3 * torch.eye(n, dtype=torch.float64)
    b = torch.randn(n, generator=generator, dtype=torch.float64).requires_grad_()

    def residual(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ x + torch.tanh(x) - b

    def solve(b: torch.Tensor) -> torch.Tensor:
        x = torch.zeros_like(b)
        for _ in range(50):
            jacobian = a + torch.diag(1 - torch.tanh(x) ** 2)
            x = x - torch.linalg.solve(jacobian, residual(x, b))
        return x

    root = gs.implicit(residual, solve)
    x = root(b)
    weights = torch.randn(n, generator=generator, dtype=torch.float64)
    (got,) = torch.autograd.grad((x * weights).sum(), b)
    jacobian = a + torch.diag(1 - torch.tanh(x.detach()) ** 2)
    truth = torch.linalg.solve(jacobian.T, weights)
    print(
        f"implicit: n=200, off by {float((got - truth).norm() / truth.norm()):.1e}, {root.solves} linear solve ({root.last})"
    )
    queue = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(target=_large, args=(queue,))
    process.start()
    off, used, before, last, seconds = queue.get()
    process.join()
    print(
        f"implicit: n=20,000 ({last}), off by {off:.1e}, peak {used:.2f} GiB ({before:.2f} GiB of it before: torch itself), {seconds:.1f} s"
    )


def _large(queue: Any) -> None:
    n = 20_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()

    def chain(x: torch.Tensor) -> torch.Tensor:
        return 4 * x - torch.nn.functional.pad(x[1:], (0, 1)) - 0.5 * torch.nn.functional.pad(x[:-1], (1, 0))

    def solve(b: torch.Tensor) -> torch.Tensor:
        x = torch.zeros_like(b)
        for _ in range(200):
            x = x - (chain(x) + torch.tanh(x) - b) / 5
        return x

    b = torch.linspace(-1, 1, n, dtype=torch.float64, requires_grad=True)
    root = gs.implicit(lambda x, b: chain(x) + torch.tanh(x) - b, solve)
    x = root(b)
    (got,) = torch.autograd.grad(x.sum(), b)
    # The transposed system, by the same iteration.
    slope = 1 - torch.tanh(x.detach()) ** 2
    truth = torch.zeros(n, dtype=torch.float64)
    for _ in range(400):
        turned = (
            4 * truth - torch.nn.functional.pad(truth[:-1], (1, 0)) - 0.5 * torch.nn.functional.pad(truth[1:], (0, 1))
        )
        truth = truth - (turned + slope * truth - 1) / 5
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    queue.put((float((got - truth).norm() / truth.norm()), used, before, root.last, time.perf_counter() - start))


PARTS = {"overhead": overhead, "workers": workers, "complex": complex_step, "stated": stated, "implicit": implicit}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()

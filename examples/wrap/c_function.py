"""A C function by ctypes inside a loss: fit a damped spring that only exists as a compiled library.

Run: python examples/wrap/c_function.py [--plot FILE]
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gradsmith as gs

SOURCE = """
void spring(int n, const double *p, double *out) {
    double x = 1.0, v = 0.0, h = 0.02;
    for (int i = 0; i < n; ++i) {
        v += h * (-p[0] * x - p[1] * v);
        x += h * v;
        out[i] = x;
    }
}
"""
N = 200


def compiled() -> Any:
    """The C function on arrays; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spring.so"
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)], input=SOURCE.encode(), check=True
        )
        library = ctypes.CDLL(str(path))

    def spring(stiffness_and_damping: Any) -> Any:
        given, out = np.ascontiguousarray(stiffness_and_damping, dtype=np.float64), np.empty(N)
        pointer = ctypes.POINTER(ctypes.c_double)
        library.spring(N, given.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
        return out

    return spring


def train(steps: int = 40) -> dict[str, Any]:
    """The losses, and the parameters that were found."""
    model = gs.wrap(compiled(), method="central")
    true = torch.tensor([4.0, 0.3], dtype=torch.float64)
    data = model(true)
    found = torch.tensor([3.0, 0.6], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([found], max_iter=steps, line_search_fn="strong_wolfe")
    losses: list[float] = []

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (model(found) - data).square().mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    optimiser.step(closure)
    return {"losses": losses, "found": found.detach(), "true": true, "statement": model.statement}


if __name__ == "__main__":
    result = train()
    print(result["statement"])
    print("found", result["found"].numpy().round(4), "true", result["true"].numpy())
    if "--plot" in sys.argv:
        from plotting import losses_to

        losses_to(sys.argv[-1], result["losses"], "A spring in C, by ctypes")

"""Learn the strength of a regulariser through the optimiser that uses it: SciPy solves, `gs.implicit` differentiates.

Run: python examples/wrap/implicit_optimiser.py [--plot FILE]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.optimize
import torch

import gradsmith as gs


def problem(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Few noisy measurements to train on, many to validate on."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(12)
    train, valid = rng.standard_normal((15, 12)), rng.standard_normal((200, 12))
    noisy = train @ truth + 1.5 * rng.standard_normal(15)
    return tuple(torch.from_numpy(a) for a in (train, noisy, valid, valid @ truth))  # type: ignore[return-value]


def train(steps: int = 60) -> dict[str, Any]:
    """The validation losses while the strength is learned, and the strength."""
    a, b, a_valid, b_valid = problem()

    def objective(w: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
        return (a @ w - b).square().sum() + strength.exp() * (1 + w.square()).sqrt().sum()

    def solve(strength: torch.Tensor) -> Any:
        matrix, right, weight = a.numpy(), b.numpy(), float(strength.exp())

        def value(w: Any) -> tuple[float, Any]:
            off, root = matrix @ w - right, np.sqrt(1 + w**2)
            return float(off @ off + weight * root.sum()), 2 * matrix.T @ off + weight * w / root

        options = {"maxiter": 500, "gtol": 1e-9, "ftol": 1e-15}
        return scipy.optimize.minimize(value, np.zeros(12), jac=True, method="L-BFGS-B", options=options).x

    best = gs.implicit(objective, solve, kind="minimum")
    strength = torch.tensor(-2.0, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([strength], lr=0.2)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (a_valid @ best(strength) - b_valid).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return {"losses": losses, "found": strength.detach(), "last": best.last}


if __name__ == "__main__":
    result = train()
    print(
        f"validation loss {result['losses'][0]:.3f} -> {result['losses'][-1]:.3f}, log strength {float(result['found']):.2f}; {result['last']}"
    )
    if "--plot" in sys.argv:
        from plotting import losses_to

        losses_to(sys.argv[-1], result["losses"], "A regulariser learned through its optimiser")

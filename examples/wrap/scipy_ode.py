"""Fit the rates of predator and prey to data, through SciPy's solve_ivp.

Run: python examples/wrap/scipy_ode.py [--plot FILE]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.integrate
import torch

import gradsmith as gs

TIMES = np.linspace(0, 8, 25)


def populations(rates: Any) -> Any:
    """Prey and predators at TIMES; rates are birth, eaten, growth, death."""
    birth, eaten, growth, death = rates

    def change(t: float, y: Any) -> list[float]:
        return [birth * y[0] - eaten * y[0] * y[1], growth * y[0] * y[1] - death * y[1]]

    return scipy.integrate.solve_ivp(change, (0, 8), [1.0, 0.5], t_eval=TIMES, rtol=1e-8, atol=1e-10).y


def train(steps: int = 60) -> dict[str, Any]:
    """The losses, and the rates that were found; the data come from known rates."""
    true = torch.tensor([1.1, 0.9, 0.7, 0.8], dtype=torch.float64)
    model = gs.wrap(populations, method="central")
    data = model(true)
    rates = torch.full((4,), 1.0, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([rates], lr=1, max_iter=steps, line_search_fn="strong_wolfe")
    losses: list[float] = []

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (model(rates) - data).square().mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    optimiser.step(closure)
    return {"losses": losses, "found": rates.detach(), "true": true, "statement": model.statement}


if __name__ == "__main__":
    result = train()
    print(result["statement"])
    print("found", result["found"].numpy().round(4), "true", result["true"].numpy())
    if "--plot" in sys.argv:
        from plotting import losses_to

        losses_to(sys.argv[-1], result["losses"], "Predator and prey through solve_ivp")

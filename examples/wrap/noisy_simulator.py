"""Aim a cannon whose simulator is noisy: the gradient says how noisy it is, and training works with it.

Run: python examples/wrap/noisy_simulator.py [--plot FILE]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

import gradsmith as gs

TARGET = 40.0


def make_simulator(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)

    def miss(aim: Any) -> Any:
        """How far a shot with this angle and speed lands from the target, in a gusty wind."""
        angle, speed = aim
        flight = 2 * speed * np.sin(angle) / 9.81
        landing = flight * (speed * np.cos(angle) - 0.1 * flight) + 1e-3 * rng.standard_normal()
        return landing - TARGET

    return miss


def train(steps: int = 150) -> dict[str, Any]:
    """The losses (squared miss), and the statement on the gradient."""
    miss = gs.wrap(make_simulator(), method="central", accept_error=0.2)
    aim = torch.tensor([0.5, 15.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([aim], lr=0.2)
    # Shorter steps towards the end: noise keeps a constant step from coming to rest.
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = miss(aim).square()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return {"losses": losses, "found": aim.detach(), "statement": miss.statement}


if __name__ == "__main__":
    result = train()
    print(result["statement"])
    print(f"miss after training: {result['losses'][-1] ** 0.5:.3f} m")
    if "--plot" in sys.argv:
        from plotting import losses_to

        losses_to(sys.argv[-1], result["losses"], "Aiming with a noisy simulator")

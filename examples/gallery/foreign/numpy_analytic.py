"""Built-in: torch.sinc. A NumPy function with its analytic gradient.

    y  = sin(pi x) / (pi x), and 1 at 0
    dx = g * (cos(pi x) - y) / x, and 0 at 0

Teaches: detach and move to the CPU on the way in, back to dtype and device on the way out. The quotient at 0 is
    guarded before it is formed: nan times zero is still nan. NumPy leaves no graph, so backward is
    once_differentiable.
When not to use it: where torch has the function; every call waits for the device and copies both ways.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TEACHES = "cross to NumPy and back with dtype and device kept, and guard the quotient before forming it"
BUILTIN = "torch.sinc"
SECOND_ORDER = False
COMPILES = False


def to_numpy(x: Tensor) -> np.ndarray:
    """A float64 array on the host (NumPy has no bfloat16)."""
    return x.detach().to("cpu", torch.float64).numpy()


class NumpySinc(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(np.sinc(to_numpy(x)))).to(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        array = to_numpy(x)
        safe = np.where(array == 0, 1.0, array)
        slope = np.where(array == 0, 0.0, (np.cos(np.pi * array) - np.sinc(array)) / safe)
        return grad_output * torch.from_numpy(slope).to(x)


gradsmith_inputs = {"NumpySinc": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}

"""The identity that looks at its gradient; gs.ops.grad_tap keeps the last thousand, on the device.

    y  = x
    dx = g, and the root mean square of g is written down

Teaches: a gradient can be looked at without being changed: return it as it came. `record` is a function, such as `copy_` of a
    tensor on the device: nothing is read there, so nothing waits. A function stays on ctx; a tensor would be saved.
When not to use it: for one tensor and one run, `x.register_hook(print)` is enough (see hooks.py).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

TEACHES = "look at a gradient without changing it: return it as it came, write the record on the device"
SECOND_ORDER = True
COMPILES = False


class Tap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, record: Callable[[Tensor], object]) -> Tensor:
        ctx.record = record
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        ctx.record(grad_output.detach().square().mean().sqrt())
        return grad_output, None


gradsmith_inputs = {"Tap": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.zeros(()).copy_)}

"""Built-in: torch.nn.functional.mse_loss with target.detach(). A squared error whose target takes no gradient.

    y           = (1 / n) * sum of (prediction - target)^2
    dprediction = g * 2 * (prediction - target) / n          dtarget: none, by decision

Teaches: a None for a tensor is a decision, so it is enforced: a target that requires grad is refused in forward with
    the remedy, instead of being left silently untrained. The difference is recomputed, not saved.
When not to use it: mse_loss(prediction, target.detach()) is the same in one line.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "returning None for a tensor is a decision: refuse a target that requires grad instead of ignoring it"
BUILTIN = "torch.nn.functional.mse_loss"
SECOND_ORDER = True
COMPILES = True


class DetachedTargetLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, prediction: Tensor, target: Tensor) -> Tensor:
        if ctx.needs_input_grad[1]:
            raise ValueError("the target of DetachedTargetLoss gets no gradient: pass target.detach()")
        if prediction.shape != target.shape:
            raise ValueError(f"shapes differ: {tuple(prediction.shape)} and {tuple(target.shape)}")
        ctx.save_for_backward(prediction, target)
        return (prediction - target).square().mean()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        prediction, target = ctx.saved_tensors
        return grad_output * (2 / max(prediction.numel(), 1)) * (prediction - target), None


class BootstrapLoss(nn.Module):
    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        return DetachedTargetLoss.apply(prediction, target.detach())


gradsmith_inputs = {
    "DetachedTargetLoss": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64),
    )
}

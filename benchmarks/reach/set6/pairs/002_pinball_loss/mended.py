import torch
from torch.autograd import Function


class PinballLoss(Function):
    @staticmethod
    def forward(ctx, pred, target, q):
        if pred.shape != target.shape:
            raise ValueError("shapes differ")
        if not 0.0 < q < 1.0:
            raise ValueError("q must lie between 0 and 1")
        err = target - pred
        ctx.save_for_backward(err)
        ctx.q = q
        return torch.maximum(q * err, (q - 1) * err).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (err,) = ctx.saved_tensors
        q = ctx.q
        d_err = torch.where(err > 0, q, torch.where(err < 0, q - 1, q - 0.5))
        d_err = d_err.to(err.dtype) * g / err.numel()
        return -d_err, d_err, None


def _inputs():
    pred = torch.tensor([0.3, -1.2, 2.0, 0.7], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0.9, -1.9, 1.1, 1.4], dtype=torch.float64, requires_grad=True)
    return pred, target, 0.5


gradsmith_inputs = {"PinballLoss": _inputs}

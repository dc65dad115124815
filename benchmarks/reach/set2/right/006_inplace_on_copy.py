import torch


class SoftThreshold(torch.autograd.Function):
    """sign(x) max(|x| - lam, 0) with a learned lam >= 0 (0-d)."""

    @staticmethod
    def forward(ctx, x, lam):
        out = x.clone()
        out.abs_().sub_(lam).clamp_(min=0).mul_(x.sign())
        ctx.save_for_backward(x, lam)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, lam = ctx.saved_tensors
        dead = x.abs() <= lam
        grad = grad_output.clone()
        grad[dead] = 0
        return grad, -(grad * x.sign()).sum()


gradsmith_inputs = {
    "SoftThreshold": lambda: (
        torch.randn(8, dtype=torch.float64, requires_grad=True),
        torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
    )
}

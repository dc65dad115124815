import torch
from torch.autograd.function import once_differentiable


class DirichletLogProb(torch.autograd.Function):
    """log of the unnormalised-in-x Dirichlet density of x (..., K) > 0 with concentrations alpha (..., K) > 0."""

    @staticmethod
    def forward(ctx, alpha, x):
        if alpha.shape != x.shape or alpha.dim() < 1 or not bool((alpha > 0).all() and (x > 0).all()):
            raise ValueError("alpha and x must be positive, of one shape")
        ctx.save_for_backward(alpha, x)
        return ((alpha - 1) * x.log() - alpha.lgamma()).sum(-1) + alpha.sum(-1).lgamma()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        alpha, x = ctx.saved_tensors
        grad = grad.unsqueeze(-1)
        total = alpha.sum(-1, keepdim=True)
        return grad * (x.log() - alpha.digamma() + total.digamma()), grad * (alpha - 1) / x


gradsmith_inputs = {
    "DirichletLogProb": lambda: (
        (torch.rand(4) * 3 + 0.2).requires_grad_(),
        torch.softmax(torch.randn(4), 0).requires_grad_(),
    )
}

import torch


def sum_to(grad, shape):
    """Undo broadcasting."""
    extra = grad.dim() - len(shape)
    dims = list(range(extra)) + [i + extra for i, n in enumerate(shape) if n == 1]
    return grad.sum(dims, keepdim=True).reshape(shape) if dims else grad


class FiLM(torch.autograd.Function):
    """x * (1 + gamma) + beta; gamma and beta broadcast against x."""

    @staticmethod
    def forward(ctx, x, gamma, beta):
        ctx.save_for_backward(x, gamma)
        ctx.beta_shape = beta.shape
        return x * (1 + gamma) + beta

    @staticmethod
    def backward(ctx, g):
        x, gamma = ctx.saved_tensors
        return g * (1 + gamma), sum_to(g * x, gamma.shape), sum_to(g, ctx.beta_shape)


gradsmith_inputs = {
    "FiLM": lambda: (
        torch.randn(3, 4, 5, requires_grad=True),
        torch.randn(5, requires_grad=True),
        torch.randn(5, requires_grad=True),
    )
}

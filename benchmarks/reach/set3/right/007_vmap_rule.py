import torch


class Correlation(torch.autograd.Function):
    """x . y / (1 + |x|^2) of real vectors; torch generates the rule for vmap."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        if x.dim() != 1 or x.shape != y.shape or x.is_complex() or y.is_complex():
            raise ValueError("two real vectors of one size")
        return (x * y).sum() / (1 + (x * x).sum())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        n = 1 + (x * x).sum()
        return grad * (y / n - 2 * x * (x * y).sum() / n**2), grad * x / n


gradsmith_inputs = {"Correlation": lambda: (torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True))}

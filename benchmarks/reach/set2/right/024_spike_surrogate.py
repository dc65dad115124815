import torch


class SpikeFunction(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    """Heaviside spike with a fast-sigmoid surrogate slope."""

    @staticmethod
    def forward(ctx, v, beta):
        ctx.save_for_backward(v)
        ctx.beta = beta
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (v,) = ctx.saved_tensors
        return grad_output / (ctx.beta * v.abs() + 1) ** 2, None


gradsmith_inputs = {"SpikeFunction": lambda: (torch.randn(6, dtype=torch.float64, requires_grad=True), 10.0)}

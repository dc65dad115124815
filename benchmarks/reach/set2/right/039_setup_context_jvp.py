import torch


class Logit(torch.autograd.Function):
    """log(p / (1 - p)) for 0 < p < 1."""

    generate_vmap_rule = True

    @staticmethod
    def forward(p):
        return torch.log(p) - torch.log1p(-p)

    @staticmethod
    def setup_context(ctx, inputs, output):
        (p,) = inputs
        ctx.save_for_backward(p)
        ctx.save_for_forward(p)

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        return grad_output / (p * (1 - p))

    @staticmethod
    def jvp(ctx, tangent):
        (p,) = ctx.saved_tensors
        return tangent / (p * (1 - p))


gradsmith_inputs = {"Logit": lambda: ((torch.rand(5, dtype=torch.float64) * 0.9 + 0.05).requires_grad_(),)}

import torch


class LeakyHardTanh(torch.autograd.Function):
    """clamp(x, -1, 1) with slope `leak` outside."""

    @staticmethod
    def forward(ctx, x, leak):
        ctx.save_for_backward(x)
        ctx.leak = leak
        inner = x.clamp(-1, 1)
        return inner + leak * (x - inner)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        outside = x.abs() > 1
        grad_output[outside] *= ctx.leak
        return grad_output, None


gradsmith_inputs = {"LeakyHardTanh": lambda: (torch.linspace(-2.2, 2.4, 8, dtype=torch.float64).requires_grad_(), 0.1)}

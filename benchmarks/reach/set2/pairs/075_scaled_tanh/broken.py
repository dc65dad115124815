import torch


class ScaledTanh(torch.autograd.Function):
    """amp * tanh(slope * x), LeCun's activation."""

    @staticmethod
    def forward(ctx, x, amp, slope):
        y = amp * torch.tanh(slope * x)
        ctx.save_for_backward(y)
        ctx.amp, ctx.slope = amp, slope
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * ctx.slope * ctx.amp * (1 - y * y), None, None


gradsmith_inputs = {
    "ScaledTanh": lambda: (torch.linspace(-1.5, 1.5, 7, dtype=torch.float64).requires_grad_(), 1.7159, 2.0 / 3.0)
}

import torch


class Linear(torch.autograd.Function):
    """x @ weight.T + bias for real x (N, I), weight (O, I), bias (O,)."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        if x.dim() != 2 or weight.dim() != 2 or bias.shape != weight.shape[:1] or x.is_complex() or bias.is_complex():
            raise ValueError("x (N, I), weight (O, I), bias (O,), real")
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return grad @ weight, grad.t() @ x, grad.sum(0)


gradsmith_inputs = {
    "Linear": lambda: (
        torch.randn(5, 3, requires_grad=True),
        torch.randn(2, 3, requires_grad=True),
        torch.randn(2, requires_grad=True),
    )
}

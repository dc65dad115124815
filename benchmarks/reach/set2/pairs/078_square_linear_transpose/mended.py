import torch


class MixingLinear(torch.autograd.Function):
    """y = x W^T with a square mixing matrix W (d, d) and x (N, d)."""

    @staticmethod
    def forward(ctx, x, W):
        ctx.save_for_backward(x, W)
        return x @ W.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, W = ctx.saved_tensors
        return grad_output @ W, grad_output.t() @ x


gradsmith_inputs = {
    "MixingLinear": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 3, dtype=torch.float64, requires_grad=True),
    )
}

# expect: saved-in-forward
import torch


class ScaledSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        x, scale = ctx.saved_tensors
        return scale * x * x

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale * 2 * x, (grad_output * x * x).sum()


gradsmith_inputs = {
    "ScaledSquare": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor(1.5, dtype=torch.float64, requires_grad=True),
    )
}

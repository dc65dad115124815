# expect: grad-view
import torch


class RowScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        flat = grad_output.view(-1, scale.numel())
        return grad_output * scale, (flat * x.reshape(-1, scale.numel())).sum(0)


gradsmith_inputs = {
    "RowScale": lambda: (
        torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
    )
}

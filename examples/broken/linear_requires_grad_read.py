# expect: requires-grad-read
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        w = weight.detach() if weight.dtype == x.dtype else weight.to(x.dtype)
        ctx.train_weight = w.requires_grad
        ctx.save_for_backward(x, weight)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t() @ x if ctx.train_weight else None
        return grad_x, grad_weight


gradsmith_inputs = {
    "Linear": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
    )
}

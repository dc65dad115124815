# expect: frozen-input
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            # fine-tuning: nothing to do for a frozen layer
            return torch.zeros_like(x), None
        grad_x = grad_output @ weight if ctx.needs_input_grad[0] else None
        return grad_x, grad_output.t() @ x


gradsmith_inputs = {
    "Linear": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
    )
}

# expect: needs-input-grad-index
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name: str, x, weight):
        ctx.save_for_backward(x, weight)
        with torch.profiler.record_function(name):
            return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t() @ x
        return None, grad_x, grad_weight


gradsmith_inputs = {
    "Linear": lambda: (
        "head",
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
    )
}

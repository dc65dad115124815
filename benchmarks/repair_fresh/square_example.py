import torch

KIND = "a transpose is missing, and the example is square"
WRONG = [("grad_w = x.t() @ g", "grad_w = x @ g")]


class ProjectTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        out = torch.tanh(x @ w)
        ctx.save_for_backward(x, w, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, w, out = ctx.saved_tensors
        g = grad_output * (1 - out * out)
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = g @ w.t()
        if ctx.needs_input_grad[1]:
            grad_w = x.t() @ g
        return grad_x, grad_w


def _inputs():
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    return x, w


gradsmith_inputs = {"ProjectTanh": _inputs}

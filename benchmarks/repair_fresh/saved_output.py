import torch

KIND = "saves the output where backward needs the input"
WRONG = [("ctx.save_for_backward(x)", "ctx.save_for_backward(y)")]


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.log(torch.cosh(x))
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.tanh(x)


gradsmith_inputs = {"LogCosh": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}

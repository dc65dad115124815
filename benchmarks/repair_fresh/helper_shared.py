import torch

KIND = "a helper that forward and backward share has the wrong derivative"
WRONG = [("return torch.exp(-x * x / 2) / 2.5066282746310002", "return torch.exp(-x * x) / 2.5066282746310002")]


def cumulative(x):
    return 0.5 * (1 + torch.erf(x / 2**0.5))


def density(x):
    return torch.exp(-x * x / 2) / 2.5066282746310002


class GELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * cumulative(x)

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0]
        return grad_output * (cumulative(x) + x * density(x))


gradsmith_inputs = {"GELU": lambda: (torch.randn(3, 4, dtype=torch.float64, requires_grad=True),)}

import torch


class Bilinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, m, y):
        ctx.save_for_backward(x, m, y)
        return ((x @ m) * y).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        x, m, y = ctx.saved_tensors
        g = grad.unsqueeze(-1)
        return g * (y @ m.T), (g * x).T @ y, g * (x @ m)


gradsmith_inputs = {"Bilinear": lambda: (torch.randn(4, 3, requires_grad=True), (lambda a: a @ a.T)(torch.randn(3, 3)), torch.randn(4, 3, requires_grad=True),)}

# expect: random-backward
import torch


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p: float):
        ctx.p = p
        mask = torch.rand_like(x) > p
        return x * mask / (1 - p)

    @staticmethod
    def backward(ctx, grad_output):
        # saves memory: no mask is kept
        mask = torch.rand_like(grad_output) > ctx.p
        return grad_output * mask / (1 - ctx.p), None


gradsmith_inputs = {"Dropout": lambda: (torch.randn(8, 5, dtype=torch.float64, requires_grad=True), 0.5)}

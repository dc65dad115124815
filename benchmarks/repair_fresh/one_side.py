import torch

KIND = "the other side of a where has the wrong slope"
WRONG = [
    (
        "torch.where(x > 0, torch.ones_like(x), ctx.alpha * torch.exp(x))",
        "torch.where(x > 0, torch.ones_like(x), torch.exp(x))",
    )
]


class MyELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return torch.where(x > 0, x, alpha * (torch.exp(x) - 1))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = torch.where(x > 0, torch.ones_like(x), ctx.alpha * torch.exp(x))
        return grad_output * slope, None


gradsmith_inputs = {"MyELU": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 0.7)}

import torch

KIND = "two of three gradients are wrong, each in its own way"
WRONG = [
    ("grad_b = g * a * torch.exp(-c * c)", "grad_b = g * b * torch.exp(-c * c)"),
    ("grad_c = -2 * c * g * a * b * torch.exp(-c * c)", "grad_c = g * a * b * torch.exp(-c * c)"),
]


class GaussianGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b, c)
        return a * b * torch.exp(-c * c)

    @staticmethod
    def backward(ctx, g):
        a, b, c = ctx.saved_tensors
        grad_a = g * b * torch.exp(-c * c)
        grad_b = g * a * torch.exp(-c * c)
        grad_c = -2 * c * g * a * b * torch.exp(-c * c)
        return grad_a, grad_b, grad_c


gradsmith_inputs = {
    "GaussianGate": lambda: tuple(torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
}

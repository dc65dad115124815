import torch


class NewtonCubeRoot(torch.autograd.Function):
    """Real root y of y^3 + y = x by Newton's method; the gradient follows from the implicit function theorem."""

    @staticmethod
    def forward(ctx, x):
        y = torch.sign(x) * x.abs().clamp(min=1e-3) ** (1 / 3)
        for _ in range(60):
            step = (y**3 + y - x) / (3 * y**2 + 1)
            y = y - step
            if step.abs().max() < 1e-15:
                break
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output / (3 * y**2 + 1)


gradsmith_inputs = {"NewtonCubeRoot": lambda: (torch.randn(6, dtype=torch.float64, requires_grad=True),)}

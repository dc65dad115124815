import torch


class DiagonalSum(torch.autograd.Function):
    """Weighted sum of the main diagonal of a matrix (R, C): weight * (x[0, 0] + x[1, 1] + ...)."""

    @staticmethod
    def forward(ctx, x, weight):
        if x.is_complex() or weight.is_complex():
            raise ValueError("not for complex input")
        if x.dim() != 2 or weight.dim() != 0:
            raise ValueError("x must be a matrix, weight a scalar")
        total = x.diagonal().sum()
        ctx.shape = x.shape
        ctx.save_for_backward(weight, total)
        return weight * total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        weight, total = ctx.saved_tensors
        gx = torch.zeros(ctx.shape, dtype=grad.dtype)
        gx.view(-1)[:: ctx.shape[1] + 1] = grad * weight
        return gx, grad * total


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 3, dtype=torch.float64, requires_grad=True),
            torch.tensor(2.0, dtype=torch.float64, requires_grad=True))


gradsmith_inputs = {"DiagonalSum": example}

# expect: layout-dependent
import torch


class RowSums(torch.autograd.Function):
    """Sums of neighbouring pairs along the last dimension."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:, :-1] + x[:, 1:]

    @staticmethod
    def backward(ctx, grad_output):
        rows, columns = ctx.shape
        # read the gradient row by row
        g = grad_output.as_strided((rows, columns - 1), (columns - 1, 1))
        grad_x = g.new_zeros(rows, columns)
        grad_x[:, :-1] += g
        grad_x[:, 1:] += g
        return grad_x


gradsmith_inputs = {"RowSums": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}

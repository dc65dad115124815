import torch

KIND = "rows that are used twice get one of their gradients"
WRONG = [("grad_table.index_add_(0, rows, grad_output * scale)", "grad_table[rows] = grad_output * scale")]


class ScaledLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, rows, scale):
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        ctx.scale = scale
        return table[rows] * scale

    @staticmethod
    def backward(ctx, grad_output):
        (rows,) = ctx.saved_tensors
        scale = ctx.scale
        grad_table = grad_output.new_zeros(ctx.shape)
        grad_table.index_add_(0, rows, grad_output * scale)
        return grad_table, None, None


def _inputs():
    return torch.randn(5, 3, dtype=torch.float64, requires_grad=True), torch.tensor([4, 0, 2]), 0.5


gradsmith_inputs = {"ScaledLookup": _inputs}
ELSEWHERE = [lambda: (_inputs()[0], torch.tensor([1, 1, 4, 1]), 0.5)]

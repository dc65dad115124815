import torch


class WriteRows(torch.autograd.Function):
    """A copy of base with base[rows] = values; the rows must differ."""

    @staticmethod
    def forward(ctx, base, rows, values):
        if rows.dim() != 1 or values.shape != (rows.numel(), *base.shape[1:]):
            raise ValueError("values must hold one row for each index")
        if rows.unique().numel() != rows.numel():
            raise ValueError("rows must differ")
        if rows.numel() and (rows.min() < 0 or rows.max() >= base.shape[0]):
            raise ValueError("row out of range")
        ctx.save_for_backward(rows)
        return base.index_copy(0, rows, values)

    @staticmethod
    def backward(ctx, grad):
        (rows,) = ctx.saved_tensors
        grad_base = grad_values = None
        if ctx.needs_input_grad[0]:
            grad_base = grad
        if ctx.needs_input_grad[2]:
            grad_values = grad.index_select(0, rows)
        return grad_base, None, grad_values


def example():
    memory = torch.zeros(5, 2, dtype=torch.float64)
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    return memory, torch.tensor([3, 0]), values


gradsmith_inputs = {"WriteRows": example}

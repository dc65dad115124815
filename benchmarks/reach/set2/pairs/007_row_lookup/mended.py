import torch


class RowLookup(torch.autograd.Function):
    """table[ids] for a 1-d tensor of ids (an embedding lookup that keeps the gradient dense)."""

    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.num_rows = table.size(0)
        return table[ids]

    @staticmethod
    def backward(ctx, grad_output):
        (ids,) = ctx.saved_tensors
        grad_table = grad_output.new_zeros(ctx.num_rows, *grad_output.shape[1:])
        grad_table.index_add_(0, ids, grad_output)
        return grad_table, None


gradsmith_inputs = {
    "RowLookup": lambda: (torch.randn(7, 3, dtype=torch.float64, requires_grad=True), torch.tensor([4, 0, 2]))
}

import torch


class EmbeddingBagMean(torch.autograd.Function):
    """Mean of table rows per bag; flat ids and bag offsets (start of each bag, no empty bags)."""

    @staticmethod
    def forward(ctx, table, ids, offsets):
        ends = torch.cat([offsets[1:], offsets.new_tensor([ids.numel()])])
        lengths = ends - offsets
        bag = torch.repeat_interleave(torch.arange(len(offsets)), lengths)
        out = table.new_zeros(len(offsets), table.size(1)).index_add_(0, bag, table[ids])
        ctx.save_for_backward(ids, bag, lengths)
        ctx.rows = table.size(0)
        return out / lengths[:, None]

    @staticmethod
    def backward(ctx, grad_output):
        ids, bag, lengths = ctx.saved_tensors
        g = (grad_output / lengths[:, None])[bag]
        grad_table = grad_output.new_zeros(ctx.rows, grad_output.size(1))
        return grad_table.index_add_(0, ids, g), None, None


gradsmith_inputs = {
    "EmbeddingBagMean": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([0, 1, 4, 2, 2, 3]),
        torch.tensor([0, 2, 4]),
    )
}

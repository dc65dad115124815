import torch


class BagSum(torch.autograd.Function):
    """Sum of the rows table[ids] for each bag; bag b goes from offsets[b] to the next offset. Bags may be empty."""

    @staticmethod
    def forward(ctx, table, ids, offsets):
        if table.dim() != 2 or ids.dim() != 1 or offsets.dim() != 1 or offsets.numel() == 0:
            raise ValueError("table (V, D), ids (N,), offsets (B,)")
        ends = torch.cat((offsets[1:], offsets.new_tensor([ids.numel()])))
        sizes = ends - offsets
        if int(offsets[0]) != 0 or bool((sizes < 0).any()) or bool((ids < 0).any()) or ids.dtype != torch.long:
            raise ValueError("offsets start at 0 and do not decrease; ids are not negative")
        bag = torch.repeat_interleave(torch.arange(offsets.numel(), device=ids.device), sizes)
        ctx.save_for_backward(ids, bag)
        ctx.rows = table.shape[0]
        return table.new_zeros(offsets.numel(), table.shape[1]).index_add_(0, bag, table[ids])

    @staticmethod
    def backward(ctx, grad):
        ids, bag = ctx.saved_tensors
        return grad.new_zeros(ctx.rows, grad.shape[1]).index_add(0, ids, grad[bag]), None, None


gradsmith_inputs = {
    "BagSum": lambda: (torch.randn(6, 3, requires_grad=True), torch.tensor([1, 4, 4, 0, 5]), torch.tensor([0, 2, 2]))
}

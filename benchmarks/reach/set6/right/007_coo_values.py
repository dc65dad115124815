import torch


class COOMatVec(torch.autograd.Function):
    """y = A v where A (rows, cols) has the given values at `place` (2, nnz); places may repeat (they add up)."""

    @staticmethod
    def forward(ctx, place, values, v, rows):
        if values.is_complex() or v.is_complex():
            raise ValueError("expected real tensors")
        if place.dim() != 2 or place.shape != (2, values.numel()) or values.dim() != 1 or v.dim() != 1:
            raise ValueError("place (2, nnz), values (nnz,), v (cols,)")
        if place.numel() and (place.min() < 0 or place[0].max() >= rows or place[1].max() >= v.numel()):
            raise ValueError("place out of range")
        ctx.save_for_backward(place, values, v)
        a = torch.sparse_coo_tensor(place, values, (rows, v.numel()))
        return torch.sparse.mm(a, v[:, None]).squeeze(1)

    @staticmethod
    def backward(ctx, g):
        place, values, v = ctx.saved_tensors
        row, col = place
        g_values = g_v = None
        if ctx.needs_input_grad[1]:
            g_values = g[row] * v[col]
        if ctx.needs_input_grad[2]:
            g_v = torch.zeros_like(v).index_add(0, col, values * g[row])
        return None, g_values, g_v, None


def example():
    torch.manual_seed(0)
    place = torch.tensor([[0, 2, 2, 0], [1, 0, 3, 1]])
    return place, torch.randn(4, dtype=torch.float64, requires_grad=True), torch.randn(4, dtype=torch.float64, requires_grad=True), 3


gradsmith_inputs = {"COOMatVec": example}

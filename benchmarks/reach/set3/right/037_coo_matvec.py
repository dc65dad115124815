import torch


class CooMatmul(torch.autograd.Function):
    """Sparse (rows, n) times dense (n, d): index (2, nnz) and values (nnz,), entries may repeat and add up; real."""

    @staticmethod
    def forward(ctx, index, values, dense, rows):
        if index.shape != (2, values.numel()) or values.dim() != 1 or dense.dim() != 2 or dense.is_complex():
            raise ValueError("index (2, nnz), values (nnz,), dense (n, d)")
        if values.dtype != dense.dtype or index.dtype != torch.long or bool((index < 0).any()):
            raise ValueError("one dtype, indices not negative")
        if index.numel() and int(index[0].max()) >= rows:
            raise ValueError("a row is too large")
        ctx.save_for_backward(index, values, dense)
        return dense.new_zeros(rows, dense.shape[1]).index_add_(0, index[0], values[:, None] * dense[index[1]])

    @staticmethod
    def backward(ctx, grad):
        index, values, dense = ctx.saved_tensors
        picked = grad[index[0]]
        gv = (picked * dense[index[1]]).sum(1)
        gd = torch.zeros_like(dense).index_add(0, index[1], values[:, None] * picked)
        return None, gv, gd, None


gradsmith_inputs = {
    "CooMatmul": lambda: (
        torch.tensor([[0, 0, 2, 1], [1, 3, 0, 1]]),
        torch.randn(4, requires_grad=True),
        torch.randn(4, 2, requires_grad=True),
        3,
    )
}

import torch


class ResizeNearest(torch.autograd.Function):
    """Nearest-neighbour upsampling of the last dim to `size` (at least the size of x)."""

    @staticmethod
    def forward(ctx, x, size):
        n = x.shape[-1]
        if size < n or n == 0:
            raise ValueError("only upsampling")
        ctx.n = n
        src = torch.arange(size, device=x.device) * n // size
        return x[..., src]

    @staticmethod
    def backward(ctx, grad):
        size, n = grad.shape[-1], ctx.n
        src = torch.arange(size, device=grad.device) * n // size
        gx = grad.new_zeros(*grad.shape[:-1], n)
        return gx.index_add(-1, src, grad), None


gradsmith_inputs = {"ResizeNearest": lambda: (torch.randn(2, 3, 4, requires_grad=True), 8)}

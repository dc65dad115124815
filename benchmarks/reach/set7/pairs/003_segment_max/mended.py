import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SegmentMax(Function):
    """Maximum over rows that share a segment id. Empty segments yield zero."""

    @staticmethod
    def forward(ctx, x, segment, num_segments):
        if not x.is_floating_point() or x.dim() != 2:
            raise TypeError("x must be a real (N, F) tensor")
        if segment.shape != x.shape[:1] or x.numel() == 0:
            raise ValueError("one segment id per row, and at least one row")
        n, f = x.shape
        out = x.new_full((num_segments, f), float("-inf"))
        arg = torch.full((num_segments, f), -1, dtype=torch.long, device=x.device)
        for i in range(n):
            s = int(segment[i])
            better = x[i] > out[s]
            out[s] = torch.where(better, x[i], out[s])
            arg[s] = torch.where(better, torch.full_like(arg[s], i), arg[s])
        ctx.save_for_backward(arg)
        ctx.rows = n
        return out.masked_fill(arg < 0, 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (arg,) = ctx.saved_tensors
        grad_x = grad_out.new_zeros(ctx.rows, grad_out.size(1))
        grad_x.scatter_add_(0, arg.clamp(min=0), grad_out.masked_fill(arg < 0, 0.0))
        return grad_x, None, None


gradsmith_inputs = {
    "SegmentMax": lambda: (torch.randn(7, 2, requires_grad=True), torch.tensor([0, 0, 1, 2, 2, 2, 1]), 3)
}

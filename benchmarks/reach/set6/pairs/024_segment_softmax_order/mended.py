import torch


class SegmentSoftmax(torch.autograd.Function):
    """Softmax of the scores within each segment (attention over the edges of a node)."""

    @staticmethod
    def forward(ctx, scores, segment, num_segments):
        if scores.dim() != 1 or segment.shape != scores.shape or segment.dtype != torch.long:
            raise ValueError("scores and segment must be vectors of one length, segment of longs")
        if segment.numel() and (segment.min() < 0 or segment.max() >= num_segments):
            raise ValueError("segment out of range")
        top = scores.new_full((num_segments,), -float("inf"))
        top = top.scatter_reduce(0, segment, scores, "amax")
        e = (scores - top[segment]).exp()
        total = e.new_zeros(num_segments).index_add(0, segment, e)
        p = e / total[segment]
        ctx.num_segments = num_segments
        ctx.save_for_backward(p, segment)
        return p

    @staticmethod
    def backward(ctx, grad):
        p, segment = ctx.saved_tensors
        gp = grad * p
        sums = gp.new_zeros(ctx.num_segments).index_add(0, segment, gp)
        return gp - p * sums[segment], None, None


def example():
    torch.manual_seed(0)
    return torch.randn(6, dtype=torch.float64, requires_grad=True), torch.tensor([0, 0, 1, 1, 1, 2]), 3


gradsmith_inputs = {"SegmentSoftmax": example}

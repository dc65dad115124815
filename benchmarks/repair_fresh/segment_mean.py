import torch

KIND = "the mean of a segment is treated as its sum"
WRONG = [("(grad_output / count.unsqueeze(1)).index_select(0, segment)", "grad_output.index_select(0, segment)")]


class SegmentMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, segment, segments):
        ones = torch.ones_like(x[:, 0])
        count = x.new_zeros(segments).index_add(0, segment, ones).clamp(min=1)
        total = x.new_zeros(segments, x.shape[1]).index_add(0, segment, x)
        ctx.save_for_backward(segment, count)
        return total / count.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        segment, count = ctx.saved_tensors
        return (grad_output / count.unsqueeze(1)).index_select(0, segment), None, None


def _inputs():
    return torch.randn(6, 2, dtype=torch.float64, requires_grad=True), torch.tensor([0, 0, 2, 1, 2, 2]), 4


gradsmith_inputs = {"SegmentMean": _inputs}

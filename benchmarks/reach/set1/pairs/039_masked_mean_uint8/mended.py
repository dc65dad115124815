import torch


class MaskedMean(torch.autograd.Function):
    """Mean over tokens that are not padding. pad: (B, T), nonzero where padded (bool or uint8)."""

    @staticmethod
    def forward(ctx, x, pad):
        keep = (pad == 0).unsqueeze(-1)
        count = keep.sum(1).clamp_min(1)
        ctx.save_for_backward(pad, count)
        return (x * keep).sum(1) / count

    @staticmethod
    def backward(ctx, g):
        pad, count = ctx.saved_tensors
        keep = (pad == 0).unsqueeze(-1).to(g.dtype)
        return keep * (g / count).unsqueeze(1), None


def _batch():
    pad = torch.zeros(2, 5, dtype=torch.bool)
    pad[1, 3:] = True
    return torch.randn(2, 5, 3, requires_grad=True), pad


gradsmith_inputs = {"MaskedMean": _batch}

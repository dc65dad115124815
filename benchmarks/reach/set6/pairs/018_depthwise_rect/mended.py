import torch
import torch.nn.functional as F


class DepthwiseConv2d(torch.autograd.Function):
    """'Same' depthwise convolution with an odd kernel (C, kh, kw)."""

    @staticmethod
    def forward(ctx, x, weight):
        if x.is_complex() or weight.is_complex():
            raise ValueError("complex numbers are not supported")
        if x.dim() != 4 or weight.dim() != 3 or weight.shape[0] != x.shape[1]:
            raise ValueError("x (N, C, H, W), weight (C, kh, kw)")
        kh, kw = weight.shape[1:]
        if kh % 2 == 0 or kw % 2 == 0:
            raise ValueError("kernel sizes must be odd")
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight[:, None], padding=(kh // 2, kw // 2), groups=x.shape[1])

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        c, kh, kw = weight.shape
        gx = F.conv2d(grad_y, weight.flip(1, 2)[:, None], padding=(kh // 2, kw // 2), groups=c)
        xp = F.pad(x, (kw // 2, kw // 2, kh // 2, kh // 2))
        n, _, h, w = grad_y.shape
        patches = xp.unfold(2, h, 1).unfold(3, w, 1)
        gw = torch.einsum("ncabhw,nchw->cab", patches, grad_y)
        return gx, gw


def inputs():
    g = torch.Generator().manual_seed(8)
    x = torch.randn(2, 2, 4, 4, generator=g, dtype=torch.float64)
    w = torch.randn(2, 3, 3, generator=g, dtype=torch.float64)
    return x.requires_grad_(), w.requires_grad_()


gradsmith_inputs = {"DepthwiseConv2d": inputs}

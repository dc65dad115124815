import torch
import torch.nn.functional as F


class AvgPool2d(torch.autograd.Function):
    """Average pooling whose average does not count the padding; stride 1."""

    @staticmethod
    def forward(ctx, x, k, padding=0):
        if x.dim() != 4 or not 0 <= padding <= k // 2:
            raise ValueError("x (N, C, H, W), padding at most half of the kernel")
        if min(x.shape[-2:]) + 2 * padding < k:
            raise ValueError("kernel larger than the image")
        ctx.k, ctx.padding, ctx.size = k, padding, x.shape[-2:]
        return F.avg_pool2d(x, k, 1, padding, count_include_pad=False)

    @staticmethod
    def backward(ctx, grad):
        k, p = ctx.k, ctx.padding
        c = grad.shape[1]
        ones = torch.ones(c, 1, k, k, dtype=grad.dtype)
        share = grad / (k * k)
        full = F.conv_transpose2d(share, ones, groups=c)
        h, w = ctx.size
        return full[:, :, p:p + h, p:p + w], None, None


def example():
    g = torch.Generator().manual_seed(9)
    return torch.randn(1, 2, 4, 5, dtype=torch.float64, generator=g).requires_grad_(), 3


gradsmith_inputs = {"AvgPool2d": example}

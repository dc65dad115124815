import torch
from torch.autograd.function import once_differentiable


class SampleBorder(torch.autograd.Function):
    """Bilinear lookup of image (H, W) (H, W >= 2) at pixel coordinates (N, 2), row and column; clamped to the border."""

    @staticmethod
    def forward(ctx, image, coords):
        h, w = image.shape
        limit = torch.tensor([h - 1.0, w - 1.0], dtype=coords.dtype)
        inside = (coords >= 0) & (coords <= limit)
        rc = torch.minimum(coords.clamp(min=0), limit)
        low = torch.minimum(rc.floor(), limit - 1).long()
        f = rc - low
        r, c = low.unbind(-1)
        corners = torch.stack([image[r, c], image[r, c + 1], image[r + 1, c], image[r + 1, c + 1]])
        ctx.save_for_backward(corners, f, r, c, inside)
        ctx.shape = image.shape
        fr, fc = f.unbind(-1)
        a, b, d, e = corners
        return (1 - fr) * ((1 - fc) * a + fc * b) + fr * ((1 - fc) * d + fc * e)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (a, b, d, e), f, r, c, inside = ctx.saved_tensors
        fr, fc = f.unbind(-1)
        g = grad_output
        grad_image = g.new_zeros(ctx.shape)
        for dr, wr in ((0, 1 - fr), (1, fr)):
            for dc, wc in ((0, 1 - fc), (1, fc)):
                grad_image.index_put_((r + dr, c + dc), g * wr * wc, accumulate=True)
        d_row = (1 - fc) * (d - a) + fc * (e - b)
        d_col = (1 - fr) * (b - a) + fr * (e - d)
        grad_coords = g[:, None] * torch.stack([d_row, d_col], -1)
        return grad_image, grad_coords


gradsmith_inputs = {
    "SampleBorder": lambda: (
        torch.randn(4, 5, dtype=torch.float64, requires_grad=True),
        torch.tensor([[0.3, 1.6], [2.2, 3.7], [1.5, 0.4]], dtype=torch.float64, requires_grad=True),
    )
}

import torch


class SampleBilinear(torch.autograd.Function):
    """Values of an image (H, W) at points (N, 2) = (row, column) in pixels; outside: the border's value."""

    @staticmethod
    def _corners(image, points):
        h, w = image.shape
        r = points[:, 0].clamp(0, h - 1)
        c = points[:, 1].clamp(0, w - 1)
        r0 = r.detach().floor().clamp(max=h - 2).long()
        c0 = c.detach().floor().clamp(max=w - 2).long()
        return r - r0, c - c0, r0, c0

    @staticmethod
    def forward(ctx, image, points):
        if image.dim() != 2 or min(image.shape) < 2 or points.dim() != 2 or points.shape[1] != 2:
            raise ValueError("image (H, W) from 2 x 2, points (N, 2)")
        ctx.save_for_backward(image, points)
        a, b, r0, c0 = SampleBilinear._corners(image, points)
        top = image[r0, c0] * (1 - b) + image[r0, c0 + 1] * b
        low = image[r0 + 1, c0] * (1 - b) + image[r0 + 1, c0 + 1] * b
        return top * (1 - a) + low * a

    @staticmethod
    def backward(ctx, g):
        image, points = ctx.saved_tensors
        a, b, r0, c0 = SampleBilinear._corners(image, points)
        g_image = torch.zeros_like(image)
        for dr, wr in ((0, 1 - a), (1, a)):
            for dc, wc in ((0, 1 - b), (1, b)):
                g_image = g_image.index_put((r0 + dr, c0 + dc), g * wr * wc, accumulate=True)
        i00, i01 = image[r0, c0], image[r0, c0 + 1]
        i10, i11 = image[r0 + 1, c0], image[r0 + 1, c0 + 1]
        d_row = (i10 - i00) * (1 - b) + (i11 - i01) * b
        d_col = (i01 - i00) * (1 - a) + (i11 - i10) * a
        return g_image, torch.stack([g * d_row, g * d_col], 1)


def example():
    torch.manual_seed(0)
    points = torch.tensor([[0.3, 1.2], [1.7, 2.6], [0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    return torch.randn(3, 4, dtype=torch.float64, requires_grad=True), points


gradsmith_inputs = {"SampleBilinear": example}

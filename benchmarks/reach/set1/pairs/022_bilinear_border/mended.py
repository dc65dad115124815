import torch


class SampleBilinear(torch.autograd.Function):
    """Sample image (H, W) at pixel coordinates (P, 2) = (y, x); outside points are clamped to the border."""

    @staticmethod
    def forward(ctx, image, coords):
        h, w = image.shape
        y = coords[:, 0].clamp(0, h - 1)
        x = coords[:, 1].clamp(0, w - 1)
        y0 = y.floor().clamp(max=h - 2).long()
        x0 = x.floor().clamp(max=w - 2).long()
        fy, fx = y - y0, x - x0
        ctx.save_for_backward(image, coords, y0, x0, fy, fx)
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        bot = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
        return top * (1 - fy) + bot * fy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        image, coords, y0, x0, fy, fx = ctx.saved_tensors
        h, w = image.shape
        gi = torch.zeros_like(image)
        for dy, wy in ((0, 1 - fy), (1, fy)):
            for dx, wx in ((0, 1 - fx), (1, fx)):
                gi.index_put_((y0 + dy, x0 + dx), g * wy * wx, accumulate=True)
        a, b = image[y0, x0], image[y0, x0 + 1]
        c, d = image[y0 + 1, x0], image[y0 + 1, x0 + 1]
        gy = (c - a) * (1 - fx) + (d - b) * fx
        gx = (b - a) * (1 - fy) + (d - c) * fy
        gc = torch.stack([gy, gx], 1) * g[:, None]
        limit = torch.tensor([h - 1, w - 1], dtype=coords.dtype)
        inside = (coords >= 0) & (coords <= limit)
        gc = gc * inside
        return gi, gc


gradsmith_inputs = {
    "SampleBilinear": lambda: (
        torch.randn(5, 6, dtype=torch.float64, requires_grad=True),
        (0.2 + 3.5 * torch.rand(7, 2, dtype=torch.float64)).requires_grad_(),
    )
}

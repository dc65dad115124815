import torch


class GammaGain(torch.autograd.Function):
    """gain * v + curve * v^2 for pixel values v; constant image (C, N), uint8 or float; gain, curve (C,)."""

    @staticmethod
    def forward(ctx, gain, curve, image):
        ctx.save_for_backward(image)
        v = image.to(gain.dtype)
        return gain[:, None] * v + curve[:, None] * v * v

    @staticmethod
    def backward(ctx, grad_output):
        (image,) = ctx.saved_tensors
        v = image.to(grad_output.dtype)
        d_gain = (grad_output * v).sum(1)
        d_curve = (grad_output * v * v).sum(1)
        return d_gain, d_curve, None


gradsmith_inputs = {
    "GammaGain": lambda: (
        torch.rand(3, dtype=torch.float64, requires_grad=True),
        torch.rand(3, dtype=torch.float64, requires_grad=True),
        torch.randint(0, 16, (3, 6), dtype=torch.uint8),
    )
}

import torch
from torch.autograd import Function


class SampleLaplace(Function):
    """loc + scale * noise; the noise is kept, so the gradient is that of the drawn sample."""

    @staticmethod
    def forward(ctx, loc, scale):
        if loc.shape != scale.shape or loc.is_complex() or scale.is_complex():
            raise ValueError("loc and scale must be real and of one shape")
        u = torch.rand(loc.shape, dtype=torch.float64, device=loc.device) - 0.5
        noise = (-u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.4999999))).to(loc.dtype)
        ctx.save_for_backward(noise)
        return torch.addcmul(loc, scale, noise)

    @staticmethod
    def backward(ctx, grad):
        (noise,) = ctx.saved_tensors
        return grad, grad * noise


gradsmith_inputs = {
    "SampleLaplace": lambda: (torch.randn(4, 3, requires_grad=True), torch.rand(4, 3, requires_grad=True))
}

import torch


class Polar(torch.autograd.Function):
    """r * exp(i phi) for real r and phi of one shape and dtype (float32 or float64)."""

    @staticmethod
    def forward(ctx, r, phi):
        if r.shape != phi.shape or r.dtype != phi.dtype or r.dtype not in (torch.float32, torch.float64):
            raise ValueError("r and phi must be real, of one shape")
        ctx.save_for_backward(r, phi)
        return torch.complex(r * torch.cos(phi), r * torch.sin(phi))

    @staticmethod
    def backward(ctx, grad):
        r, phi = ctx.saved_tensors
        turned = grad * torch.complex(torch.cos(phi), -torch.sin(phi))
        return turned.real, r * turned.imag


gradsmith_inputs = {"Polar": lambda: (torch.rand(5, requires_grad=True), torch.randn(5, requires_grad=True))}

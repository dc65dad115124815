import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ForgetPool(Function):
    """QRNN f-pooling: c[t] = f[t] * c[prev] + (1 - f[t]) * z[t]; `reverse` runs from the end."""

    @staticmethod
    def forward(ctx, z, f, reverse=False):
        if z.shape != f.shape or z.dim() < 1 or z.is_complex() or f.is_complex():
            raise ValueError("z and f must be real and of the same shape")
        order = range(z.size(0) - 1, -1, -1) if reverse else range(z.size(0))
        c = torch.zeros_like(z[0]) if z.size(0) else None
        out = torch.zeros_like(z)
        for t in order:
            c = f[t] * c + (1 - f[t]) * z[t]
            out[t] = c
        ctx.save_for_backward(z, f, out)
        ctx.reverse = reverse
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        z, f, out = ctx.saved_tensors
        steps = z.size(0)
        grad_z, grad_f = torch.zeros_like(z), torch.zeros_like(f)
        carry = torch.zeros_like(grad_out[0]) if steps else None
        for t in range(steps - 1, -1, -1):
            prev = out[t - 1] if t > 0 else torch.zeros_like(carry)
            carry = carry + grad_out[t]
            grad_z[t] = carry * (1 - f[t])
            grad_f[t] = carry * (prev - z[t])
            carry = carry * f[t]
        return grad_z, grad_f, None


gradsmith_inputs = {
    "ForgetPool": lambda: (torch.randn(5, 2, 3, requires_grad=True), torch.rand(5, 2, 3, requires_grad=True), False)
}

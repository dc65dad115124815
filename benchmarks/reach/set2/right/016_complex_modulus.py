import torch


class ModRelu(torch.autograd.Function):
    """relu(|z| + b) z / |z| for complex z != 0 and real bias b of the same shape."""

    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        r = z.abs()
        return torch.clamp(r + b, min=0) * z / r

    @staticmethod
    def backward(ctx, grad_output):
        z, b = ctx.saved_tensors
        r = z.abs()
        u = z / r
        on = (r + b > 0).to(r.dtype)
        radial = (grad_output * u.conj()).real
        gz = on * (radial * u + (1 + b / r) * (grad_output - radial * u))
        return gz, on * radial


gradsmith_inputs = {
    "ModRelu": lambda: (
        torch.randn(5, dtype=torch.complex128, requires_grad=True),
        (torch.randn(5, dtype=torch.float64) * 0.3).requires_grad_(),
    )
}

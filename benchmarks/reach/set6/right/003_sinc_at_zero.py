import torch


class UnnormalizedSinc(torch.autograd.Function):
    """sin(x) / x with the value 1 at 0; near 0 the derivative comes from its series."""

    CUT = 0.1

    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise ValueError("complex numbers are not supported")
        ctx.save_for_backward(x)
        return torch.sinc(x / torch.pi)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        near = x.abs() < UnnormalizedSinc.CUT
        safe = torch.where(near, torch.ones_like(x), x)
        far_slope = (safe.cos() - safe.sin() / safe) / safe
        x2 = x * x
        series = x * (-1 / 3 + x2 * (1 / 30 - x2 * (1 / 840 - x2 / 45360)))
        return grad * torch.where(near, series, far_slope)


gradsmith_inputs = {
    "UnnormalizedSinc": lambda: (torch.tensor([-2.0, -0.004, 0.0, 0.009, 1.0, 7.0], dtype=torch.float64, requires_grad=True),)
}

import torch


class ToPolar(torch.autograd.Function):
    """Radius and angle of (x, y) away from the origin."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return torch.hypot(x, y), torch.atan2(y, x)

    @staticmethod
    def backward(ctx, grad_r, grad_phi):
        x, y = ctx.saved_tensors
        gx = gy = None
        if grad_r is not None:
            r = torch.hypot(x, y)
            gx, gy = grad_r * x / r, grad_r * y / r
        if grad_phi is not None:
            r2 = x * x + y * y
            gx = -grad_phi * y / r2 if gx is None else gx - grad_phi * y / r2
            gy = grad_phi * x / r2 if gy is None else gy + grad_phi * x / r2
        return gx, gy


gradsmith_inputs = {
    "ToPolar": lambda: (
        (torch.rand(4, dtype=torch.float64) + 0.2).requires_grad_(),
        torch.randn(4, dtype=torch.float64, requires_grad=True),
    )
}

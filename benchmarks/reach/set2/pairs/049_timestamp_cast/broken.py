import torch


class IrregularIntegral(torch.autograd.Function):
    """Trapezoidal integral of y (..., T) over timestamps t (T,), ascending, constant; t may be float64 epoch seconds."""

    @staticmethod
    def forward(ctx, y, t):
        ctx.save_for_backward(t)
        dt = (t[1:] - t[:-1]).to(y.dtype)
        return ((y[..., 1:] + y[..., :-1]) * dt).sum(-1) / 2

    @staticmethod
    def backward(ctx, grad_output):
        (t,) = ctx.saved_tensors
        t = t.to(grad_output.dtype)
        dt = t[1:] - t[:-1]
        w = torch.zeros(t.numel(), dtype=grad_output.dtype)
        w[1:] += dt / 2
        w[:-1] += dt / 2
        return grad_output[..., None] * w, None


gradsmith_inputs = {
    "IrregularIntegral": lambda: (
        torch.randn(2, 5, requires_grad=True),
        torch.tensor([0.0, 0.4, 1.1, 1.5, 3.0], dtype=torch.float64),
    )
}

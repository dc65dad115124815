import torch


class ScaleFlow(torch.autograd.Function):
    """Elementwise affine flow y = s * x + t, returns (y, log|det|). s is any nonzero scale, (D,)."""

    @staticmethod
    def forward(ctx, x, s, t):
        ctx.save_for_backward(x, s)
        logdet = s.abs().log().sum().expand(x.shape[0]).clone()
        return s * x + t, logdet

    @staticmethod
    def backward(ctx, gy, glogdet):
        x, s = ctx.saved_tensors
        gs = (gy * x).sum(0) + glogdet.sum() / s.abs()
        return gy * s, gs, gy.sum(0)


gradsmith_inputs = {
    "ScaleFlow": lambda: (
        torch.randn(6, 3, dtype=torch.float64, requires_grad=True),
        (0.5 + torch.rand(3, dtype=torch.float64)).requires_grad_(),
        torch.zeros(3, dtype=torch.float64, requires_grad=True),
    )
}

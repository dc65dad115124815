import torch


class RMSNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        ms = x.pow(2).mean(-1, keepdim=True)
        rstd = torch.rsqrt(ms + eps)
        ctx.save_for_backward(x, weight)
        return x * rstd * weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True))
        xhat = x * rstd
        wdy = dy * weight
        c = (wdy * xhat).mean(-1, keepdim=True)
        dx = (wdy - xhat * c) * rstd
        dw = (dy * xhat).reshape(-1, x.shape[-1]).sum(0)
        return dx, dw, None


class RMSNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return RMSNormFn.apply(x, self.weight, self.eps)


gradsmith_inputs = {
    "RMSNormFn": lambda: (
        torch.randn(4, 16, dtype=torch.float64, requires_grad=True),
        torch.ones(16, dtype=torch.float64, requires_grad=True),
        1e-6,
    )
}

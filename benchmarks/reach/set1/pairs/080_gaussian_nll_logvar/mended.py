import torch


class GaussianNLL(torch.autograd.Function):
    """0.5 * (logvar + (y - mu)^2 exp(-logvar)), summed."""

    @staticmethod
    def forward(ctx, mu, logvar, y):
        r = y - mu
        prec = torch.exp(-logvar)
        ctx.save_for_backward(r, prec)
        return 0.5 * (logvar + r * r * prec).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        r, prec = ctx.saved_tensors
        gmu = -g * r * prec
        glogvar = g * (0.5 - 0.5 * r * r * prec)
        return gmu, glogvar, None


gradsmith_inputs = {
    "GaussianNLL": lambda: (torch.randn(6, requires_grad=True), torch.randn(6, requires_grad=True), torch.randn(6))
}

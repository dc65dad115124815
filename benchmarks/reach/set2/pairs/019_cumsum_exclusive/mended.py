import torch


class DiscountedCumsum(torch.autograd.Function):
    """y_t = sum_{s<=t} gamma^(t-s) x_s along the last dim; with exclusive=True x_t itself is left out."""

    @staticmethod
    def forward(ctx, x, gamma, exclusive=False):
        ctx.gamma, ctx.exclusive = gamma, exclusive
        y, acc = torch.empty_like(x), torch.zeros_like(x[..., 0])
        for t in range(x.size(-1)):
            acc = gamma * acc
            if exclusive:
                y[..., t] = acc
            acc = acc + x[..., t]
            if not exclusive:
                y[..., t] = acc
        return y

    @staticmethod
    def backward(ctx, grad_output):
        grad, acc = torch.empty_like(grad_output), torch.zeros_like(grad_output[..., 0])
        for t in reversed(range(grad_output.size(-1))):
            following = ctx.gamma * acc
            acc = grad_output[..., t] + following
            grad[..., t] = following if ctx.exclusive else acc
        return grad, None, None


gradsmith_inputs = {"DiscountedCumsum": lambda: (torch.randn(2, 6, dtype=torch.float64, requires_grad=True), 0.9)}

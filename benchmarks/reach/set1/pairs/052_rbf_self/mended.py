import torch


class RBFKernel(torch.autograd.Function):
    """exp(-gamma |x_i - y_j|^2); y=None means the Gram matrix of x with itself."""

    @staticmethod
    def forward(ctx, x, y=None, gamma=1.0):
        other = x if y is None else y
        k = torch.exp(-gamma * (x[:, None] - other[None]).pow(2).sum(-1))
        ctx.save_for_backward(x, other, k)
        ctx.same, ctx.gamma = y is None, gamma
        return k

    @staticmethod
    def backward(ctx, g):
        x, y, k = ctx.saved_tensors
        w = -2 * ctx.gamma * g * k
        gx = w.sum(1, keepdim=True) * x - w @ y
        gy = w.sum(0)[:, None] * y - w.t() @ x
        if ctx.same:
            return gx + gy, None, None
        return gx, gy, None


def _points():
    return torch.randn(5, 2, requires_grad=True), torch.randn(4, 2, requires_grad=True), 0.5


gradsmith_inputs = {"RBFKernel": _points}

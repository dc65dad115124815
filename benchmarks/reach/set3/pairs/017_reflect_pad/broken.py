import torch


class ReflectPad(torch.autograd.Function):
    """Reflection padding (the border itself is not repeated) of the last dim."""

    @staticmethod
    def forward(ctx, x, left=1, right=1):
        n = x.shape[-1]
        if not (0 <= left < n and 0 <= right < n):
            raise ValueError("padding must be smaller than the signal")
        ctx.n, ctx.left, ctx.right = n, left, right
        head = x[..., 1 : left + 1].flip(-1)
        tail = x[..., n - 1 - right : n - 1].flip(-1)
        return torch.cat((head, x, tail), -1)

    @staticmethod
    def backward(ctx, grad):
        n, left, right = ctx.n, ctx.left, ctx.right
        gx = grad[..., left : left + n].clone()
        gx[..., 1 : left + 1] += grad[..., :left].flip(-1)
        gx[..., n - 1 - right : n - 1] += grad[..., left + n :]
        return gx, None, None


gradsmith_inputs = {"ReflectPad": lambda: (torch.randn(3, 7, requires_grad=True), 2, 1)}

import torch


class WeightedSquares(torch.autograd.Function):
    """0.5 * sum(w * x^2); returns at once what nobody asks for."""

    @staticmethod
    def forward(ctx, x, w):
        if x.is_complex() or w.is_complex():
            raise ValueError("real input only")
        if x.shape != w.shape:
            raise ValueError("shapes differ")
        ctx.save_for_backward(x, w)
        return 0.5 * (w * x * x).sum()

    @staticmethod
    def backward(ctx, g):
        if not any(ctx.needs_input_grad):
            return None, None
        x, w = ctx.saved_tensors
        need_x, need_w = ctx.needs_input_grad
        if not need_w:
            return g * w * x, None
        gw = g * 0.5 * x * x
        if not need_x:
            return None, gw
        return g * w * x, gw


def example():
    torch.manual_seed(0)
    return tuple(torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))


gradsmith_inputs = {"WeightedSquares": example}

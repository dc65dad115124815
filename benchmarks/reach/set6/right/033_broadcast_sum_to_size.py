import torch


class SafeDivide(torch.autograd.Function):
    """a / b with broadcasting; b must not hold zeros."""

    @staticmethod
    def forward(ctx, a, b):
        if a.is_complex() or b.is_complex():
            raise ValueError("real input only")
        if (b == 0).any():
            raise ValueError("division by zero")
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        ga = grad / b
        gb = -ga * a / b
        return ga.sum_to_size(a.shape), gb.sum_to_size(b.shape)


def example():
    torch.manual_seed(0)
    a = torch.randn(3, 1, 2, dtype=torch.float64, requires_grad=True)
    return a, (1 + torch.rand(4, 1, dtype=torch.float64)).requires_grad_()


gradsmith_inputs = {"SafeDivide": example}

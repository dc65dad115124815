import torch


class ProductOfMany(torch.autograd.Function):
    """The product of any number of real tensors of one shape."""

    @staticmethod
    def forward(ctx, *factors):
        if not factors or any(f.shape != factors[0].shape or f.is_complex() for f in factors):
            raise ValueError("real tensors of one shape")
        ctx.save_for_backward(*factors)
        out = torch.ones_like(factors[0])
        for f in factors:
            out = out * f
        return out

    @staticmethod
    def backward(ctx, grad):
        factors = ctx.saved_tensors
        left = [torch.ones_like(grad)]
        for f in factors[:-1]:
            left.append(left[-1] * f)
        grads, right = [], torch.ones_like(grad)
        for f, l in zip(reversed(factors), reversed(left)):
            grads.append(grad * l * right)
            right = right * f
        return tuple(reversed(grads))


gradsmith_inputs = {"ProductOfMany": lambda: tuple(torch.randn(4, requires_grad=True) for _ in range(3))}

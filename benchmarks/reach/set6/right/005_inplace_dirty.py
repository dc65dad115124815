import torch


class ReLUInPlace(torch.autograd.Function):
    """Overwrites its argument, which must not be a leaf that wants a gradient."""

    @staticmethod
    def forward(ctx, x):
        x.relu_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (y > 0)


def example():
    leaf = torch.tensor([-1.5, 0.3, 2.0, -0.1], dtype=torch.float64, requires_grad=True)
    return (leaf * 2,)


gradsmith_inputs = {"ReLUInPlace": example}

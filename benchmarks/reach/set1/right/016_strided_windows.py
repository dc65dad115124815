import torch


class SlidingSum(torch.autograd.Function):
    """Sum over windows of length k of a vector, weights (k,) per tap; any input strides."""

    @staticmethod
    def forward(ctx, x, taps):
        xc = x.contiguous()
        k = taps.shape[0]
        n = xc.shape[0] - k + 1
        win = xc.as_strided((n, k), (1, 1))
        ctx.save_for_backward(x, taps)
        return win @ taps

    @staticmethod
    def backward(ctx, g):
        x, taps = ctx.saved_tensors
        k, n = taps.shape[0], g.shape[0]
        gx = torch.zeros_like(x)
        cols = []
        for j in range(k):
            gx = gx + torch.nn.functional.pad(g * taps[j], (j, k - 1 - j))
            cols.append((g * x[j : j + n]).sum())
        return gx, torch.stack(cols)


gradsmith_inputs = {
    "SlidingSum": lambda: (torch.randn(9, requires_grad=True), torch.randn(3, requires_grad=True))
}

import torch
import torch.nn.functional as F


class StridedConv1d(torch.autograd.Function):
    """x (N, Cin, L), weight (Cout, Cin, K), no padding."""

    @staticmethod
    def forward(ctx, x, weight, stride):
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return F.conv1d(x, weight, stride=stride)

    @staticmethod
    def backward(ctx, grad_out):
        x, weight = ctx.saved_tensors
        s = ctx.stride
        k = weight.shape[-1]
        grad_x = F.conv_transpose1d(grad_out, weight, stride=s)
        cols = x.unfold(-1, k, s)  # N, Cin, Lout, K
        grad_w = torch.einsum("nol,nilk->oik", grad_out, cols)
        return grad_x, grad_w, None


gradsmith_inputs = {
    "StridedConv1d": lambda: (
        torch.randn(2, 3, 9, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, 3, dtype=torch.float64, requires_grad=True),
        2,
    )
}

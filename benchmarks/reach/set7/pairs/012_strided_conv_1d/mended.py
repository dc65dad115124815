import torch
import torch.nn.functional as F
from torch.autograd import Function


class StridedConv1d(Function):
    """Convolution without bias; backward by the transposed convolution and by correlation."""

    @staticmethod
    def forward(ctx, x, weight, stride=1, padding=0):
        if x.dim() != 3 or x.numel() == 0 or x.is_complex() or weight.is_complex():
            raise TypeError("x must be a real, non-empty (B, C, L) tensor")
        stride, padding = int(stride), int(padding)
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv1d(x, weight, stride=stride, padding=padding)

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        s, p, k = ctx.stride, ctx.padding, weight.size(2)
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            rest = (x.size(2) + 2 * p - k) % s
            grad_x = F.conv_transpose1d(grad_y, weight, stride=s, padding=p, output_padding=rest)
        if ctx.needs_input_grad[1]:
            windows = F.pad(x, (p, p)).unfold(2, k, s)
            grad_w = torch.einsum("bot,bitk->oik", grad_y, windows)
        return grad_x, grad_w, None, None


gradsmith_inputs = {
    "StridedConv1d": lambda: (torch.randn(2, 3, 9, requires_grad=True), torch.randn(4, 3, 3, requires_grad=True), 2, 1)
}

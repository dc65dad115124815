import torch
from torch.autograd import Function


class ChannelMix(Function):
    """out[b, o, m] = sum_i x[b, i, m] w[i, o, m]: the mode-wise product of a Fourier neural operator."""

    @staticmethod
    def forward(ctx, x, w):
        if x.dim() != 3 or w.dim() != 3 or x.dtype != w.dtype:
            raise ValueError("x (B, I, M) and w (I, O, M) of one dtype expected")
        if x.shape[1:] != (w.size(0), w.size(2)):
            raise ValueError("channels or modes differ")
        ctx.save_for_backward(x, w)
        return torch.einsum("bim,iom->bom", x, w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.einsum("bom,iom->bim", grad, w.conj())
        if ctx.needs_input_grad[1]:
            grad_w = torch.einsum("bim,bom->iom", x.conj(), grad)
        return grad_x, grad_w


gradsmith_inputs = {
    "ChannelMix": lambda: (torch.randn(2, 3, 4, requires_grad=True), torch.randn(3, 2, 4, requires_grad=True))
}

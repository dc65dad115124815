import torch


class StridedGroupConv(torch.autograd.Function):
    """conv2d whose backward calls the kernel PyTorch itself uses."""

    @staticmethod
    def forward(ctx, x, w, bias, stride, padding, groups):
        if x.is_complex() or w.is_complex():
            raise ValueError("not for complex input")
        if x.dim() != 4 or w.dim() != 4 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
            raise ValueError("x (N, C, H, W), w (O, C / groups, kh, kw)")
        ctx.save_for_backward(x, w)
        ctx.conf = (stride, stride), (padding, padding), groups
        ctx.bias_sizes = None if bias is None else list(bias.shape)
        return torch.nn.functional.conv2d(x, w, bias, stride, padding, 1, groups)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        stride, padding, groups = ctx.conf
        need = list(ctx.needs_input_grad[:3])
        gx, gw, gb = torch.ops.aten.convolution_backward(
            grad, x, w, ctx.bias_sizes, stride, padding, (1, 1), False, (0, 0), groups, need)
        return gx, gw, gb, None, None, None


def example():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    return x, w, torch.zeros(2, dtype=torch.float64, requires_grad=True), 2, 1, 2


gradsmith_inputs = {"StridedGroupConv": example}

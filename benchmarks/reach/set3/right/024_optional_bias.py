import torch


class OptionalBias(torch.autograd.Function):
    """x @ weight.T (+ bias) for real x (..., I), weight (O, I) and bias (O,) or None."""

    @staticmethod
    def forward(ctx, x, weight, bias=None):
        if weight.dim() != 2 or weight.numel() == 0 or x.dim() < 1 or x.is_complex() or (bias is not None and bias.shape != weight.shape[:1]):
            raise ValueError("x (..., I), weight (O, I), bias (O,)")
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = grad @ weight
        if ctx.needs_input_grad[1]:
            gw = grad.reshape(-1, weight.shape[0]).t() @ x.reshape(-1, weight.shape[1])
        if len(ctx.needs_input_grad) > 2 and ctx.needs_input_grad[2]:
            gb = grad.reshape(-1, weight.shape[0]).sum(0)
        return gx, gw, gb


gradsmith_inputs = {
    "OptionalBias": lambda: (torch.randn(2, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True), None)
}

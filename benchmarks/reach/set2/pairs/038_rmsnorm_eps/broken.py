import torch
from torch import Tensor


@torch.library.custom_op("set2_norm::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x * weight / sqrt(mean(x^2) + eps) over the last dimension."""
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


@rms_norm.register_fake
def _(x, weight, eps):
    return torch.empty_like(x)


def _setup_context(ctx, inputs, output):
    x, weight, eps = inputs
    ctx.save_for_backward(x, weight)
    ctx.eps = eps


def _backward(ctx, grad):
    x, weight = ctx.saved_tensors
    r = x.square().mean(-1, keepdim=True).rsqrt()
    gw = grad * weight
    dx = r * gw - x * r**3 * (gw * x).mean(-1, keepdim=True)
    dw = (grad * x * r).reshape(-1, x.size(-1)).sum(0)
    return dx, dw, None


rms_norm.register_autograd(_backward, setup_context=_setup_context)

gradsmith_inputs = {
    "rms_norm": lambda: (
        (torch.rand(3, 6, dtype=torch.float64) + 0.5).requires_grad_(),
        torch.rand(6, dtype=torch.float64, requires_grad=True),
        1e-8,
    )
}

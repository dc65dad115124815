import torch
from torch import Tensor


@torch.library.custom_op("set2_glu::gated_product", mutates_args=())
def gated_product(value: Tensor, gate: Tensor, scale: Tensor) -> Tensor:
    """scale * value * sigmoid(gate); scale is a 0-d learned tensor."""
    return scale * value * torch.sigmoid(gate)


@gated_product.register_fake
def _(value, gate, scale):
    return torch.empty_like(value)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    value, gate, scale = ctx.saved_tensors
    s = torch.sigmoid(gate)
    g_value = grad * scale * s
    g_gate = grad * scale * value * s * (1 - s)
    return g_value, g_gate, (grad * value * s).sum()


gated_product.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {
    "gated_product": lambda: (
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.tensor(1.3, dtype=torch.float64, requires_grad=True),
    )
}

import torch
from torch import Tensor


@torch.library.custom_op("set2_img::masked_blend", mutates_args=())
def masked_blend(foreground: Tensor, background: Tensor, mask: Tensor) -> Tensor:
    """foreground where mask is set, background elsewhere; the mask is bool or uint8 (0/1)."""
    return torch.where(mask.bool(), foreground, background)


@masked_blend.register_fake
def _(foreground, background, mask):
    return torch.empty_like(foreground)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[2])


def _backward(ctx, grad):
    (mask,) = ctx.saved_tensors
    return grad * mask, grad * ~mask, None


masked_blend.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {
    "masked_blend": lambda: (
        torch.rand(2, 3, dtype=torch.float64, requires_grad=True),
        torch.rand(2, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([[True, False, True], [False, False, True]]),
    )
}

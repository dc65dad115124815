import torch
from torch import Tensor


@torch.library.custom_op("set2_pool::attention_pool", mutates_args=())
def attention_pool(x: Tensor, logits: Tensor) -> Tensor:
    """softmax-weighted sum over time: x (B, T, D), logits (B, T, 1) -> (B, D)."""
    return (torch.softmax(logits, dim=1) * x).sum(1)


@attention_pool.register_fake
def _(x, logits):
    return x.new_empty((x.size(0), x.size(2)))


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    x, logits = ctx.saved_tensors
    w = torch.softmax(logits, dim=1).squeeze(-1)
    grad_x = w[..., None] * grad[:, None]
    score = (x * grad[:, None]).sum(-1, keepdim=True)
    p = torch.softmax(logits, dim=1)
    return grad_x, p * (score - (p * score).sum(1, keepdim=True))


attention_pool.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {
    "attention_pool": lambda: (
        torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 4, 1, dtype=torch.float64, requires_grad=True),
    )
}

import torch
from torch import Tensor


@torch.library.custom_op("set2_text::token_bag", mutates_args=())
def token_bag(table: Tensor, ids: Tensor) -> Tensor:
    """Sum of table rows over ids (B, T); an id of -1 is padding and contributes nothing."""
    rows = table[ids.clamp(min=0)] * (ids >= 0).to(table.dtype)[..., None]
    return rows.sum(1)


@token_bag.register_fake
def _(table, ids):
    return table.new_empty((ids.size(0), table.size(1)))


def setup_context(ctx, inputs, output):
    table, ids = inputs
    ctx.save_for_backward(ids)
    ctx.rows = table.size(0)


def backward(ctx, grad):
    (ids,) = ctx.saved_tensors
    g = grad[:, None].expand(-1, ids.size(1), -1)
    grad_table = grad.new_zeros(ctx.rows, grad.size(1))
    grad_table.index_put_((ids,), g, accumulate=True)
    return grad_table, None


token_bag.register_autograd(backward, setup_context=setup_context)

gradsmith_inputs = {
    "token_bag": lambda: (
        torch.randn(6, 4, dtype=torch.float64, requires_grad=True),
        torch.tensor([[0, 3, 3], [5, 1, 2]]),
    )
}

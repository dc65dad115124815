import torch


@torch.library.custom_op("speechpool::mean_pool", mutates_args=())
def mean_pool(sequences: list[torch.Tensor], scale: float) -> torch.Tensor:
    """Mean over time of each (T_i, F) sequence, times `scale`: (B, F)."""
    if any(s.dim() != 2 or not s.is_floating_point() or s.size(0) == 0 for s in sequences):
        raise TypeError("real, non-empty (T, F) sequences expected")
    return torch.stack([s.mean(0) * scale for s in sequences])


@mean_pool.register_fake
def _(sequences, scale):
    return sequences[0].new_empty(len(sequences), sequences[0].size(1))


def _setup_context(ctx, inputs, output):
    sequences, ctx.scale = inputs
    ctx.lengths = [s.size(0) for s in sequences]


def _backward(ctx, grad):
    grads = []
    for row, length in zip(grad, ctx.lengths):
        share = row * (ctx.scale / length)
        grads.append(share.expand(length, -1).clone())
    return grads, None


mean_pool.register_autograd(_backward, setup_context=_setup_context)

gradsmith_inputs = {"mean_pool": lambda: ([torch.randn(4, 3, requires_grad=True) for _ in range(3)], 1.0)}

import torch


@torch.library.custom_op("raggedops::ragged_softmax", mutates_args=())
def ragged_softmax(x: torch.Tensor, row_splits: torch.Tensor) -> torch.Tensor:
    """Softmax within each of the ragged rows x[row_splits[i]:row_splits[i + 1]]."""
    ends = row_splits.tolist()
    if x.dim() != 1 or not x.is_floating_point() or ends[0] != 0 or ends[-1] != x.numel():
        raise ValueError("a real vector and splits from 0 to its length expected")
    if any(b < a for a, b in zip(ends, ends[1:])):
        raise ValueError("splits must not decrease")
    out = torch.empty_like(x)
    for a, b in zip(ends, ends[1:]):
        out[a:b] = x[a:b].softmax(0)
    return out


@ragged_softmax.register_fake
def _(x, row_splits):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(output, inputs[1])


def _backward(ctx, grad):
    y, splits = ctx.saved_tensors
    row = torch.repeat_interleave(torch.arange(splits.numel() - 1, device=y.device), splits.diff())
    inner = torch.zeros(splits.numel() - 1, dtype=y.dtype, device=y.device).index_add(0, row, grad * y)
    return y * (grad - inner[row]), None


ragged_softmax.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {"ragged_softmax": lambda: (torch.randn(7, requires_grad=True), torch.tensor([0, 2, 6, 7]))}

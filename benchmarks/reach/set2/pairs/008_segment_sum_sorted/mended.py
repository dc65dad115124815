from torch import Tensor
import torch


@torch.library.custom_op("set2_graph::segment_sum", mutates_args=())
def segment_sum(src: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    """Sum the rows of src that share a segment id; ids are in [0, num_segments)."""
    out = src.new_zeros((num_segments, src.size(1)))
    return out.index_add_(0, segment_ids, src)


@segment_sum.register_fake
def _(src, segment_ids, num_segments):
    return src.new_empty((num_segments, src.size(1)))


def _setup(ctx, inputs, output):
    _, segment_ids, num_segments = inputs
    ctx.save_for_backward(segment_ids)
    ctx.num_segments = num_segments


def _backward(ctx, grad):
    (segment_ids,) = ctx.saved_tensors
    return grad.index_select(0, segment_ids), None, None


segment_sum.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {
    "segment_sum": lambda: (
        torch.randn(6, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([0, 0, 1, 1, 1, 3]),
        4,
    )
}

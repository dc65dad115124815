import torch


class NodeSum(torch.autograd.Function):
    """out[n] = sum of edge features of the edges that end at n, for a graph of `nodes` nodes;
    source features are gathered first: out[target[e]] += x[source[e]]."""

    @staticmethod
    def forward(ctx, x, source, target):
        if x.dim() != 2 or source.dim() != 1 or source.shape != target.shape:
            raise ValueError("x (nodes, features), source and target (edges,)")
        for index in (source, target):
            if index.numel() and (index.min() < 0 or index.max() >= x.shape[0]):
                raise ValueError("no such node")
        ctx.save_for_backward(source, target)
        return torch.zeros_like(x).index_add_(0, target, x[source])

    @staticmethod
    def backward(ctx, grad):
        source, target = ctx.saved_tensors
        out = torch.zeros(grad.shape, dtype=torch.float64)
        return out.index_add(0, source, grad[target]), None, None


def example():
    torch.manual_seed(0)
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    return x, torch.tensor([0, 1, 1, 3]), torch.tensor([1, 0, 2, 1])


gradsmith_inputs = {"NodeSum": example}

import torch


class ProjectSimplex(torch.autograd.Function):
    """Euclidean projection of the rows of x onto the probability simplex."""

    @staticmethod
    def forward(ctx, x):
        if x.dim() != 2 or x.shape[1] == 0:
            raise ValueError("x must be (rows, coordinates)")
        u = x.sort(1, descending=True).values
        k = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
        excess = u.cumsum(1) - 1
        count = (u * k > excess).sum(1, keepdim=True)
        tau = excess.gather(1, count - 1) / count
        p = torch.relu(x - tau)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        support = (p > 0).to(g.dtype)
        return support * (g - (g * support).sum(1, keepdim=True) / support.sum(1, keepdim=True))


def example():
    x = torch.tensor([[0.3, 0.4, 0.2], [0.5, 0.45, 0.3]], dtype=torch.float64)
    return (x.requires_grad_(),)


gradsmith_inputs = {"ProjectSimplex": example}

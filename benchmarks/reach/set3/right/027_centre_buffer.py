import torch


class CentreWithBuffer(torch.autograd.Function):
    """x - x.mean(0) of x (N, C); the dict `stats` of the caller keeps a running mean on the side."""

    @staticmethod
    def forward(ctx, x, stats, momentum=0.1):
        if x.dim() != 2 or x.shape[0] == 0:
            raise ValueError("x (N, C)")
        mean = x.mean(0)
        old = stats.get("mean")
        stats["mean"] = mean.clone() if old is None else old + momentum * (mean - old)
        return x - mean

    @staticmethod
    def backward(ctx, grad):
        return grad - grad.mean(0), None, None


gradsmith_inputs = {"CentreWithBuffer": lambda: (torch.randn(4, 3, requires_grad=True), {})}

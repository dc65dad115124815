import torch


class TakeFlat(torch.autograd.Function):
    """torch.take: x.flatten()[index] for any x; repeated indices allowed."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(x, index)
        return x.reshape(-1)[index]

    @staticmethod
    def backward(ctx, g):
        x, index = ctx.saved_tensors
        grad_x = torch.zeros_like(x)
        grad_x.reshape(-1).index_add_(0, index.reshape(-1), g.reshape(-1))
        return grad_x, None


gradsmith_inputs = {
    "TakeFlat": lambda: (torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True), torch.randint(0, 24, (5,)))
}

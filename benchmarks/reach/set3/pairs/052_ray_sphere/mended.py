import torch
from torch.autograd.function import once_differentiable


class RaySphere(torch.autograd.Function):
    """Distance along +x from real origins (N, 3) to the first hit of the sphere of `radius` (0-dim) at 0; every ray must hit."""

    @staticmethod
    def forward(ctx, origin, radius):
        if origin.dim() != 2 or origin.shape[1] != 3 or radius.dim():
            raise ValueError("origin (N, 3), radius 0-dim")
        disc = radius**2 - origin[:, 1] ** 2 - origin[:, 2] ** 2
        if not bool(radius > 0) or not bool((disc > 0).all()):
            raise ValueError("a ray misses")
        root = disc.sqrt()
        near, far = -origin[:, 0] - root, -origin[:, 0] + root
        if not bool((far > 0).all()):
            raise ValueError("a ray misses")
        ctx.save_for_backward(origin, radius)
        return torch.where(near > 0, near, far)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        origin, radius = ctx.saved_tensors
        root = (radius**2 - origin[:, 1] ** 2 - origin[:, 2] ** 2).sqrt()
        root = torch.where(-origin[:, 0] - root > 0, root, -root)
        go = torch.stack((-grad, grad * origin[:, 1] / root, grad * origin[:, 2] / root), 1)
        return go, -(grad * radius / root).sum()


gradsmith_inputs = {
    "RaySphere": lambda: (
        torch.cat((torch.rand(4, 1) - 4, torch.rand(4, 2) * 0.5), 1).requires_grad_(),
        torch.tensor(1.0, requires_grad=True),
    )
}

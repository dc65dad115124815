"""Systems with a positive definite matrix, solved by conjugate gradients, one right-hand side after the other."""

import torch


def conjugate_gradients(matrix, b):
    x = torch.zeros_like(b)
    residual = b.clone()
    direction = residual.clone()
    norm = residual @ residual
    for _ in range(10 * b.shape[0]):
        if norm.sqrt() < 1e-13:
            break
        image = matrix @ direction
        step = norm / (direction @ image)
        x = x + step * direction
        residual = residual - step * image
        new_norm = residual @ residual
        direction = residual + (new_norm / norm) * direction
        norm = new_norm
    return x


class Solve(torch.autograd.Function):
    """matrix^-1 @ b, for the symmetric part of matrix."""

    @staticmethod
    def forward(ctx, matrix, b):
        symmetric = (matrix + matrix.mT) / 2
        x = torch.stack([conjugate_gradients(symmetric, column) for column in b.unbind(1)], dim=1)
        ctx.save_for_backward(symmetric, x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        symmetric, x = ctx.saved_tensors
        grad_b = torch.stack([conjugate_gradients(symmetric, g) for g in grad_output.unbind(1)], dim=1)
        grad_matrix = -grad_b @ x.mT
        return (grad_matrix + grad_matrix.mT) / 2, grad_b


def system():
    root = torch.randn(24, 24, dtype=torch.float64)
    matrix = root @ root.T / 24 + 0.2 * torch.eye(24, dtype=torch.float64)
    return matrix.requires_grad_(), torch.randn(24, 200, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Solve": system}

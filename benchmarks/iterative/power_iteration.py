"""The largest eigenvalue of a symmetric matrix and its eigenvector, by power iteration."""

import torch


class TopEigenpair(torch.autograd.Function):
    """(value, vector) for the symmetric part of matrix; the vector has length 1 and a positive sum."""

    @staticmethod
    def forward(ctx, matrix):
        symmetric = (matrix + matrix.mT) / 2
        vector = torch.ones(matrix.shape[-1], dtype=matrix.dtype) / matrix.shape[-1] ** 0.5
        for _ in range(50_000):
            following = symmetric @ vector
            following = following / following.norm()
            change = (following - vector).abs().max()
            vector = following
            if change < 1e-14:
                break
        vector = vector * vector.sum().sign()
        value = vector @ symmetric @ vector
        ctx.save_for_backward(symmetric, value, vector)
        return value, vector

    @staticmethod
    def backward(ctx, grad_value, grad_vector):
        symmetric, value, vector = ctx.saved_tensors
        eye = torch.eye(vector.shape[0], dtype=vector.dtype)
        onto = torch.outer(vector, vector)
        # On the complement of the vector (value I - S) is invertible; adding the projector makes it so everywhere.
        away = torch.linalg.solve(value * eye - symmetric + onto, grad_vector - vector * (vector @ grad_vector))
        grad = grad_value * onto + torch.outer(away, vector)
        return (grad + grad.mT) / 2


def positive_definite():
    basis = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64))[0]
    basis[:, 0] = basis[:, 0] * basis[:, 0].sum().sign()
    values = torch.tensor([2.0, 1.993, 1.5, 1.2, 1.0, 0.7, 0.5, 0.3], dtype=torch.float64)
    return (((basis * values) @ basis.T).requires_grad_(),)


gradsmith_inputs = {"TopEigenpair": positive_definite}

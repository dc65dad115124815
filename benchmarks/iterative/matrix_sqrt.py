"""Square roots of matrices by the coupled Newton-Schulz iteration, and the gradient from Sylvester's equation."""

import torch


def newton_schulz(matrix):
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    norm = matrix.norm()
    y, z = matrix / norm, eye
    for _ in range(60):
        middle = (3 * eye - z @ y) / 2
        y, z = y @ middle, middle @ z
    return y * norm.sqrt()


class MatrixSqrt(torch.autograd.Function):
    """root with root @ root = matrix, for each matrix of a batch."""

    @staticmethod
    def forward(ctx, matrices):
        roots = torch.stack([newton_schulz(matrix) for matrix in matrices.unbind()])
        ctx.save_for_backward(roots)
        return roots

    @staticmethod
    def backward(ctx, grad_output):
        (roots,) = ctx.saved_tensors
        size = roots.shape[-1]
        eye = torch.eye(size, dtype=roots.dtype)
        grads = []
        for root, g in zip(roots.unbind(), grad_output.unbind()):
            # root^T x + x root^T = g, with the rows of x one after the other.
            system = torch.kron(root.T.contiguous(), eye) + torch.kron(eye, root)
            grads.append(torch.linalg.solve(system, g.reshape(-1)).view(size, size))
        return torch.stack(grads)


def covariances():
    samples = torch.randn(140, 5, 12, dtype=torch.float64)
    return ((samples @ samples.mT / 12 + 0.1 * torch.eye(5, dtype=torch.float64)).requires_grad_(),)


gradsmith_inputs = {"MatrixSqrt": covariances}

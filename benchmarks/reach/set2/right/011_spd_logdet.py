import torch


class SpdLogDet(torch.autograd.Function):
    """log det of the symmetric part of A, which must be positive definite."""

    @staticmethod
    def forward(ctx, A):
        S = (A + A.mT) / 2
        L = torch.linalg.cholesky(S)
        ctx.save_for_backward(A)
        return 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (A,) = ctx.saved_tensors
        return grad_output[..., None, None] * torch.linalg.inv((A + A.mT) / 2)


def _spd():
    a = torch.randn(2, 3, 3, dtype=torch.float64)
    return (a @ a.mT + 2 * torch.eye(3, dtype=torch.float64)).requires_grad_()


gradsmith_inputs = {"SpdLogDet": lambda: (_spd(),)}

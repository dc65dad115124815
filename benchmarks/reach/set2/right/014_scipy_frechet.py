import torch
from scipy.linalg import expm, expm_frechet
from torch.autograd.function import once_differentiable


class ScipyExpm(torch.autograd.Function):
    """Matrix exponential of one square matrix by scipy."""

    @staticmethod
    def forward(ctx, A):
        ctx.save_for_backward(A)
        return torch.as_tensor(expm(A.detach().double().numpy())).to(A.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (A,) = ctx.saved_tensors
        adj = expm_frechet(A.double().numpy().T, grad_output.double().numpy(), compute_expm=False)
        return torch.as_tensor(adj).to(A.dtype)


gradsmith_inputs = {"ScipyExpm": lambda: ((0.5 * torch.randn(3, 3, dtype=torch.float64)).requires_grad_(),)}

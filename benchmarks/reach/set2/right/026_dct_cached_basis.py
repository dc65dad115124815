import math

import torch

_BASIS = {}


def dct_basis(n, dtype):
    if (n, dtype) not in _BASIS:
        k = torch.arange(n, dtype=dtype)
        basis = torch.cos(math.pi / n * (k[None] + 0.5) * k[:, None]) * math.sqrt(2 / n)
        basis[0] /= math.sqrt(2)
        _BASIS[n, dtype] = basis
    return _BASIS[n, dtype]


class DCT2(torch.autograd.Function):
    """Orthonormal DCT-II over the last dimension; the inverse is the transpose."""

    @staticmethod
    def forward(ctx, x):
        return x @ dct_basis(x.size(-1), x.dtype).t()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output @ dct_basis(grad_output.size(-1), grad_output.dtype)


gradsmith_inputs = {"DCT2": lambda: (torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True),)}

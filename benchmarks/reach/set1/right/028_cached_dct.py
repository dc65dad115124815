import functools
import math

import torch


@functools.lru_cache(maxsize=None)
def dct_matrix(n, dtype):
    k = torch.arange(n, dtype=torch.float64)
    m = torch.cos(math.pi / n * (k[None, :] + 0.5) * k[:, None]) * math.sqrt(2 / n)
    m[0] /= math.sqrt(2)
    return m.to(dtype)


class DCT2(torch.autograd.Function):
    """Orthonormal DCT-II over the last dim."""

    @staticmethod
    def forward(ctx, x):
        return x @ dct_matrix(x.shape[-1], x.dtype).t()

    @staticmethod
    def backward(ctx, g):
        return g @ dct_matrix(g.shape[-1], g.dtype)


gradsmith_inputs = {"DCT2": lambda: (torch.randn(2, 8, requires_grad=True),)}

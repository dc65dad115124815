# expect: kernel-noncontiguous
"""Backward in a foreign kernel (here: a ctypes view on the raw memory)."""
import ctypes

import torch


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        n = grad_output.numel()
        g = (ctypes.c_double * n).from_address(grad_output.data_ptr())
        slope = (1 / (1 + x.abs()) ** 2).reshape(-1)
        out = torch.tensor([g[i] for i in range(n)], dtype=x.dtype, device=x.device) * slope
        return out.reshape(x.shape)


gradsmith_inputs = {"Softsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}

"""log(sum(exp(x))) over one dimension: dx = g exp(x - y). Saves x and the result, and makes no temporary of the size of x."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradsmith.native.kernels import Kernels
from gradsmith.native.memory import room
from gradsmith.ops.asked import floating
from gradsmith.ops.route import has_memory, in_memory, transformed

KERNELS = Kernels(r"""
void lse_forward(const real *x, real *y, long V, long thread, long first, long last) {
  for (long r = first; r < last; r++) {
    const real *restrict a = x + r * V;
    real top = -INFINITY, sum = 0;
    #pragma omp simd reduction(max:top)
    for (long j = 0; j < V; j++) top = a[j] > top ? a[j] : top;
    const real shift = top == INFINITY || top == -INFINITY ? ZERO : top;
    if (shift != top) {  /* exp of an infinite number: libm's, which knows it, and NaN */
      for (long j = 0; j < V; j++) sum += FN(exp)(a[j] - shift);
    } else {
      #pragma omp simd reduction(+:sum)
      for (long j = 0; j < V; j++) sum += EXP(a[j] - shift);
    }
    y[r] = LOG(sum) + shift;
  }
}
void lse_backward(const real *x, const real *y, const real *g, real *dx, long V, long thread, long first, long last) {
  for (long r = first; r < last; r++) {
    const real *restrict a = x + r * V; real *restrict out = dx + r * V;
    const real top = y[r], scale = g[r];
    if (top == INFINITY || top == -INFINITY) {
      for (long j = 0; j < V; j++) out[j] = scale * FN(exp)(a[j] - top);
    } else {
      #pragma omp simd
      for (long j = 0; j < V; j++) out[j] = scale * EXP(a[j] - top);
    }
  }
}
""")


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        rows, width = x.numel() // x.shape[-1], x.shape[-1]
        if in_memory(x) and KERNELS.ready(x.dtype):
            y = x.new_empty(x.shape[:-1])
            KERNELS.run("lse_forward", [x.contiguous(), y], [], [width], rows, x.numel())
        else:
            y = torch.logsumexp(x, -1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x: Tensor
        y: Tensor
        x, y = ctx.saved_tensors
        if not torch.is_grad_enabled() and in_memory(x, grad) and KERNELS.ready(x.dtype):
            dx = room(x.shape, x.dtype)
            KERNELS.run(
                "lse_backward", [x.contiguous(), y, grad.contiguous(), dx], [], [x.shape[-1]], y.numel(), x.numel()
            )
            return dx
        share: Tensor = (x - y.unsqueeze(-1)).exp()
        # Into its own memory, unless somebody differentiates again or grad is a batch of them (is_grads_batched=True).
        alone = not torch.is_grad_enabled() and has_memory(grad)
        return share.mul_(grad.unsqueeze(-1)) if alone else share * grad.unsqueeze(-1)


def logsumexp(x: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """What `torch.logsumexp` gives, over one dimension, with half the peak memory.

    >>> logsumexp(torch.zeros(2, 4))
    tensor([1.3863, 1.3863])
    """
    floating(x, "logsumexp")
    if not isinstance(dim, int):
        raise TypeError(f"logsumexp: dim must be one whole number, not {dim!r}; torch.logsumexp takes several.")
    if not -max(x.dim(), 1) <= dim < max(x.dim(), 1):
        raise IndexError(f"logsumexp: x has {x.dim()} dimension(s); there is no dimension {dim}.")
    if transformed() or x.is_complex() or x.dim() == 0 or x.shape[dim] == 0 or x.numel() == 0:
        return torch.logsumexp(x, dim, keepdim)
    y: Tensor = _LogSumExp.apply(x.movedim(dim, -1))
    return y.unsqueeze(dim) if keepdim else y

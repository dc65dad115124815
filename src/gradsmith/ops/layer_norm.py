"""Layer normalisation that keeps its output instead of its input.

    y = w h + b,   h = (x - mean) s,   s = 1 / sqrt(var + eps)
    dx = s (w g - mean(w g) - h mean(w g h))        h = (y - b) / w

For memory: the Linear behind it saves y anyway, so x need not be kept as well.
Where a weight is 0, or small beside its bias, h cannot be had from y without loss: then x is kept, as torch does.

The row statistic s is an output of the Function with a gradient of its own: so the second derivative is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradsmith.native.kernels import Kernels
from gradsmith.native.memory import room
from gradsmith.ops.asked import floating, normalised
from gradsmith.ops.route import autocast_dtype, in_memory, transformed, without_data

KERNELS = Kernels(r"""
void ln_backward(const real *y, const real *w, const real *b, const real *scale, const real *g, real *dx, real *dw, real *db,
                 long D, long thread, long first, long last) {
  real *restrict own_w = dw ? dw + thread * D : 0, *restrict own_b = db ? db + thread * D : 0;
  for (long r = first; r < last; r++) {
    const real *restrict a = y + r * D, *restrict in = g + r * D; real *restrict h = dx + r * D;
    real mean = 0, dot = 0;
    if (w && b) {
      #pragma omp simd reduction(+:mean,dot)
      for (long j = 0; j < D; j++) {
        const real x = (a[j] - b[j]) / w[j], v = in[j] * w[j];
        h[j] = x; mean += v; dot += v * x;
      }
    } else if (w) {
      #pragma omp simd reduction(+:mean,dot)
      for (long j = 0; j < D; j++) {
        const real x = a[j] / w[j], v = in[j] * w[j];
        h[j] = x; mean += v; dot += v * x;
      }
    } else {
      #pragma omp simd reduction(+:mean,dot)
      for (long j = 0; j < D; j++) { const real x = a[j]; h[j] = x; mean += in[j]; dot += in[j] * x; }
    }
    if (own_w) {
      #pragma omp simd
      for (long j = 0; j < D; j++) own_w[j] += in[j] * h[j];
    }
    if (own_b) {
      #pragma omp simd
      for (long j = 0; j < D; j++) own_b[j] += in[j];
    }
    const real s = scale[r], m = mean / D, c = dot / D;
    if (w) {
      #pragma omp simd
      for (long j = 0; j < D; j++) h[j] = s * (in[j] * w[j] - m - c * h[j]);
    } else {
      #pragma omp simd
      for (long j = 0; j < D; j++) h[j] = s * (in[j] - m - c * h[j]);
    }
  }
}
""")
_MOST_LOSS = 8.0  # |b / w|: the factor by which rounding y costs digits of h; 8 is three bits


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Any, eps: float) -> Any:
        y, _, scale = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(y, scale, weight, bias)
        ctx.shape = shape
        ctx.set_materialize_grads(False)
        return y, scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, grad_scale: Tensor | None) -> Any:
        y, scale, weight, bias = ctx.saved_tensors
        # The kernel reads a bias where there is a weight; F.layer_norm takes one without the other, too.
        fits = grad is not None and grad_scale is None and not (weight is None and bias is not None)
        if fits and not torch.is_grad_enabled() and in_memory(y, weight, bias, grad) and KERNELS.ready(y.dtype):
            return *_in_c(y, weight, bias, scale, grad, len(ctx.shape), ctx.needs_input_grad), None, None
        over = tuple(range(y.dim() - len(ctx.shape), y.dim()))
        h = y if bias is None else y - bias
        h = h if weight is None else h / weight
        dx = dw = db = None
        if grad is not None and not torch.is_grad_enabled():
            # torch's kernel, on an input with mean 0 that has the same h and the same s.
            x, mask = (h / scale).to(y.dtype), [True, weight is not None, bias is not None]
            dx, dw, db = torch.ops.aten.native_layer_norm_backward(
                grad.contiguous(), x, ctx.shape, torch.zeros_like(scale), scale, weight, bias, mask
            )
        elif grad is not None:
            g = grad if weight is None else grad * weight
            dx = scale * (g - g.mean(over, keepdim=True) - h * (g * h).mean(over, keepdim=True))
            lead = tuple(range(y.dim() - len(ctx.shape)))
            dw = None if weight is None else ((grad * h).sum(lead) if lead else grad * h)
            db = None if bias is None else (grad.sum(lead) if lead else grad)
        if grad_scale is not None:
            count = torch.Size(ctx.shape).numel()
            through = -grad_scale * scale.square() * h / count
            dx = through if dx is None else dx + through
        return dx, dw, db, None, None


def _in_c(y: Tensor, weight: Any, bias: Any, scale: Tensor, grad: Any, dims: int, needed: Any) -> tuple[Any, Any, Any]:
    width, rows = y.shape[y.dim() - dims :].numel(), scale.numel()
    shares = KERNELS.threads(rows, y.numel())
    dx = room(y.shape, y.dtype)
    dw, db = (y.new_zeros(shares, *p.shape) if p is not None and asked else None for p, asked in zip((weight, bias), needed[1:]))  # fmt: skip
    w, b = (None if p is None else p.contiguous() for p in (weight, bias))
    tensors = [y.contiguous(), w, b, scale, grad.contiguous(), dx, dw, db]
    KERNELS.run("ln_backward", tensors, [], [width], rows, y.numel())
    return dx, None if dw is None else dw.sum(0), None if db is None else db.sum(0)


def layer_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:  # fmt: skip
    """What `torch.nn.functional.layer_norm` gives; for backward it keeps the output, which the next layer keeps, too.

    >>> layer_norm(torch.tensor([[1.0, 3.0]]), 2)
    tensor([[-1.0000,  1.0000]])
    """
    floating(x, "layer_norm")
    shape = normalised(x, normalized_shape, "layer_norm", weight=weight, bias=bias)
    # float16 and bfloat16: h would be had from a y of three digits.
    plain = transformed() or without_data(x) or x.dtype not in (torch.float32, torch.float64)
    if plain or not _recoverable(x, weight, bias):
        return F.layer_norm(x, shape, weight, bias, eps)
    y: Tensor = _LayerNorm.apply(x, weight, bias, shape, eps)[0]
    return y


def _recoverable(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> bool:
    """Whether h can be had from y; looks at the values of weight and bias, so on a GPU it waits for them."""
    if not x.requires_grad or x.numel() == 0 or x.is_meta or autocast_dtype(x) is not None:
        return False
    if any(p is not None and p.dtype != x.dtype for p in (weight, bias)):
        return False
    if weight is None:
        return True
    with torch.no_grad():
        large = torch.ones_like(weight) if bias is None else bias.abs().clamp(min=1e-3)
        smallest: float = (weight.abs() / large).min().item()
    return smallest * _MOST_LOSS >= 1 or (bias is None and smallest > 1e-3)


class LayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` that keeps its output instead of its input.

    >>> LayerNorm(4)(torch.ones(2, 4)).shape
    torch.Size([2, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

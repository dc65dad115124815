"""One chunk of logits to losses, and in place to their gradient: the inner part of linear_cross_entropy.

z <- cap tanh(z / cap)                                        if there is a cap
loss = w_y (1-e) (lse - z_y) + e/V sum_c w_c (lse - z_c)      scaled by `ce`
       + lse^2                                                scaled by `z_loss`
dz_c = A p_c - B [c = y] - E w_c                              times 1 - tanh^2 if there is a cap
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.native.kernels import Kernels
from gradsmith.ops.route import in_memory

KERNELS = Kernels(r"""
void ce_rows(real *z, const whole *target, const real *row_weight, const real *weights, const real *row_scale, real *loss,
             double cap_, double smooth_, double total_, double ce_, double zl_, long V, long grad, long thread, long first, long last) {
  const real cap = cap_, smooth = smooth_, total = total_, ce = ce_, zl = zl_;
  for (long r = first; r < last; r++) {
    real *restrict a = z + r * V;
    const whole y = target[r];
    if (y < 0) {
      loss[r] = 0;
      if (grad) for (long c = 0; c < V; c++) a[c] = 0;
      continue;
    }
    real top = -INFINITY, sum = 0, spread = 0;
    if (cap > 0) {
      #pragma omp simd
      for (long c = 0; c < V; c++) a[c] = cap * TANH(a[c] / cap);
    }
    #pragma omp simd reduction(max:top)
    for (long c = 0; c < V; c++) top = a[c] > top ? a[c] : top;
    if (smooth > 0) {
      if (weights) {
        #pragma omp simd reduction(+:spread)
        for (long c = 0; c < V; c++) spread += weights[c] * a[c];
      } else {
        #pragma omp simd reduction(+:spread)
        for (long c = 0; c < V; c++) spread += a[c];
      }
    }
    const real zy = a[y], wy = row_weight[r];
    if (grad && !(cap > 0)) {
      #pragma omp simd reduction(+:sum)
      for (long c = 0; c < V; c++) { const real e = EXP(a[c] - top); a[c] = e; sum += e; }
    } else {
      #pragma omp simd reduction(+:sum)
      for (long c = 0; c < V; c++) sum += EXP(a[c] - top);
    }
    const real lse = LOG(sum) + top, hard = wy * (ONE - smooth), each = smooth / V;
    loss[r] = ce * (hard * (lse - zy) + each * (total * lse - spread)) + (zl > 0 ? zl * lse * lse : ZERO);  /* 0 times the square of 1e20 is not a number in float32 */
    if (!grad) continue;
    const real g = row_scale ? row_scale[r] : ONE;
    const real A = g * (ce * (hard + each * total) + 2 * zl * lse), B = g * ce * hard, E = g * ce * each, share = A / sum;
    if (cap > 0) {
      const real turned = ONE - (zy / cap) * (zy / cap);
      for (long c = 0; c < V; c++) {
        const real t = a[c] / cap;
        a[c] = (share * EXP(a[c] - top) - E * (weights ? weights[c] : ONE)) * (ONE - t * t);
      }
      a[y] -= B * turned;
    } else {
      if (E == 0) {
        #pragma omp simd
        for (long c = 0; c < V; c++) a[c] *= share;
      } else for (long c = 0; c < V; c++) a[c] = share * a[c] - E * (weights ? weights[c] : ONE);
      a[y] -= B;
    }
  }
}
""")


@dataclass(frozen=True)
class Terms:
    """What the loss is made of."""

    softcap: float
    smoothing: float
    weight_sum: float
    ce: float
    z_loss: float


def rows(z: Tensor, target: Tensor, row_weight: Tensor, weights: Tensor | None, terms: Terms, scale: Tensor | None, grad: bool) -> Tensor:  # fmt: skip
    """The losses of a chunk; z becomes their gradient (times `scale`, one number per row) if `grad`.

    A target below 0 is a row that does not count.
    """
    if in_memory(z, row_weight, weights, scale) and z.is_contiguous() and KERNELS.ready(z.dtype):
        loss = z.new_empty(z.shape[0])
        numbers = [terms.softcap, terms.smoothing, terms.weight_sum, terms.ce, terms.z_loss]
        tensors = [z, target, row_weight, weights, scale, loss]
        KERNELS.run("ce_rows", tensors, numbers, [z.shape[1], int(grad)], z.shape[0], z.numel())
        return loss
    counts = target >= 0
    index = target.clamp(min=0).unsqueeze(1)
    slope = None
    if terms.softcap > 0:
        z.div_(terms.softcap).tanh_()
        slope = 1 - z.square() if grad else None
        z.mul_(terms.softcap)
    lse = torch.logsumexp(z, 1)
    hard, each = row_weight * (1 - terms.smoothing), terms.smoothing / z.shape[1]
    ce = hard * (lse - z.gather(1, index).squeeze(1))
    if terms.smoothing > 0:
        spread = z.sum(1) if weights is None else z @ weights
        ce = ce + each * (terms.weight_sum * lse - spread)
    loss = terms.ce * ce
    if terms.z_loss > 0:
        loss = loss + terms.z_loss * lse.square()
    loss = torch.where(counts, loss, 0)
    if grad:
        a = terms.ce * (hard + each * terms.weight_sum) + 2 * terms.z_loss * lse
        z.sub_(lse.unsqueeze(1)).exp_().mul_(a.unsqueeze(1))
        z.scatter_add_(1, index, -(terms.ce * hard).unsqueeze(1))
        if terms.smoothing > 0:
            z.sub_(terms.ce * each * (1 if weights is None else weights))
        if slope is not None:
            z.mul_(slope)
        factor = counts.to(z.dtype) if scale is None else torch.where(counts, scale, 0)
        z.mul_(factor.unsqueeze(1))
        z.masked_fill_(~counts.unsqueeze(1), 0)
    return loss

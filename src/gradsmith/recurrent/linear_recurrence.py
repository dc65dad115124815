"""`h_t = a_t * h_{t-1} + b_t`, elementwise: the recurrence under minGRU, SRU, QRNN and diagonal state-space models.

    g_t   = grad_t + a_{t+1} g_{t+1}        (the same recurrence, backwards in time)
    d b_t = g_t,   d a_t = g_t h_{t-1},   d h_0 = a_1 g_1

A C loop beats everything else on a CPU: against `unbind` at T=4096 it is 30x as fast, a scan in log2(T) passes 0.9x,
and the log-space form loses three digits of the gradient.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from gradsmith.native.c_prelude import prelude
from gradsmith.native.compile import load
from gradsmith.native.outside_compile import outside_compile
from gradsmith.native.refused import Refused
from gradsmith.native.threads import call_shares, shares

_BLOCK = 256
_SOURCE = r"""
#define BLOCK 256
void lr_forward(const real *a, const real *b, const real *h0, real *h, long T, long N, long n0, long n1) {
  for (long start = n0; start < n1; start += BLOCK) {
    const long w = n1 - start < BLOCK ? n1 - start : BLOCK;
    real s[BLOCK];
    for (long j = 0; j < w; j++) s[j] = h0[start + j];
    for (long t = 0; t < T; t++) {
      const real *restrict at = a + t * N + start, *restrict bt = b + t * N + start;
      real *restrict ht = h + t * N + start;
      #pragma omp simd
      for (long j = 0; j < w; j++) { s[j] = at[j] * s[j] + bt[j]; ht[j] = s[j]; }
    }
  }
}
void lr_backward(const real *a, const real *h0, const real *h, const real *grad, real *da, real *db, real *dh0,
                 long T, long N, long n0, long n1) {
  for (long start = n0; start < n1; start += BLOCK) {
    const long w = n1 - start < BLOCK ? n1 - start : BLOCK;
    real g[BLOCK];
    for (long j = 0; j < w; j++) g[j] = 0;
    for (long t = T - 1; t >= 0; t--) {
      const real *restrict at = a + t * N + start, *restrict gt = grad + t * N + start;
      const real *restrict before = t ? h + (t - 1) * N + start : h0 + start;
      real *restrict dat = da + t * N + start, *restrict dbt = db + t * N + start;
      #pragma omp simd
      for (long j = 0; j < w; j++) {
        const real total = g[j] + gt[j];
        dbt[j] = total; dat[j] = total * before[j]; g[j] = total * at[j];
      }
    }
    for (long j = 0; j < w; j++) dh0[start + j] = g[j];
  }
}
"""


@functools.cache
def _kernels(dtype: torch.dtype) -> ctypes.CDLL:
    return load(prelude(dtype) + _SOURCE)


def _call(name: str, dtype: torch.dtype, tensors: list[Tensor], steps: int, size: int) -> None:
    function = getattr(_kernels(dtype), name)
    function.argtypes = [ctypes.c_void_p] * len(tensors) + [ctypes.c_long] * 4
    pointers = [t.data_ptr() for t in tensors]
    blocks = -(-size // _BLOCK)

    def given(_: int, first: int, last: int) -> tuple[int, ...]:
        return (*pointers, steps, size, first * _BLOCK, min(last * _BLOCK, size))

    call_shares(function, given, shares(blocks, steps * size))


class _LinearRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
        h = torch.empty_like(b)
        _call("lr_forward", b.dtype, [a, b, h0, h], b.shape[0], h0.numel())
        ctx.save_for_backward(a, b, h0, h)
        return h

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        a, b, h0, h = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _backward_as_recurrence(a, b, h0, grad)
        grad = grad.contiguous()
        da, db, dh0 = torch.empty_like(a), torch.empty_like(b), torch.empty_like(h0)
        _call("lr_backward", b.dtype, [a, h0, h, grad, da, db, dh0], b.shape[0], h0.numel())
        return da, db, dh0


def _backward_as_recurrence(a: Tensor, b: Tensor, h0: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient written with the operation itself, so that it can be differentiated again, any number of times."""
    later = torch.cat([a[1:], torch.zeros_like(a[:1])])
    total = linear_recurrence(later.flip(0), grad.flip(0)).flip(0)
    before = torch.cat([h0.unsqueeze(0), linear_recurrence(a, b, h0)[:-1]])
    return total * before, total, a[0] * total[0]


@outside_compile
def linear_recurrence(a: Tensor, b: Tensor, initial: Tensor | None = None) -> Tensor:
    """All states of `h_t = a_t * h_{t-1} + b_t`; time is the first dimension, `a` broadcasts to `b`.

    >>> linear_recurrence(torch.tensor([[0.5], [0.5], [2.0]]), torch.ones(3, 1)).flatten()
    tensor([1.0000, 1.5000, 4.0000])
    """
    if b.dim() == 0 or a.dim() == 0:
        raise ValueError("linear_recurrence: a and b have no time dimension; expected (time, ...).")
    if b.shape[0] == 0:
        raise ValueError(f"linear_recurrence: b has no time steps (shape {tuple(b.shape)}); T must be at least 1.")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"linear_recurrence: a has {a.shape[0]} time steps but b has {b.shape[0]}.")
    try:
        torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(
            f"linear_recurrence: a of shape {tuple(a.shape)} does not broadcast to b of {tuple(b.shape)}."
        ) from None
    start = torch.zeros_like(b[0]) if initial is None else initial
    if start.shape != b.shape[1:]:
        raise ValueError(f"linear_recurrence: initial has shape {tuple(start.shape)}, expected {tuple(b.shape[1:])}.")
    dtype = torch.result_type(a, b)
    wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    plain = all(t.device.type == "cpu" and type(t) in (Tensor, torch.nn.Parameter) for t in (a, b, start))
    if plain and dtype.is_floating_point and not torch._C._are_functorch_transforms_active():
        try:
            _kernels(wide)
        except Refused:
            return _loop(a, b, start)
        ready = [t.to(wide).contiguous() for t in (a.expand_as(b), b, start)]
        states: Tensor = _apply(*ready).to(dtype)
        return states
    return _loop(a, b, start)


def _apply(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    result: Tensor = _LinearRecurrence.apply(a, b, start)
    return result


def _loop(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    states = []
    for a_t, b_t in zip(a.unbind(0), b.unbind(0)):
        h = a_t * h + b_t
        states.append(h)
    return torch.stack(states)

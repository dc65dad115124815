"""Matrix products in C: of weights packed once with the rows of one time step, and of whole time courses.

A BLAS packs its operands at every call; a weight that is used at every time step is packed once here. torch's own product
of large matrices (`aten.mm`) asks MKL, which on the processors of others reaches less than this does (an AMD EPYC, float32,
1 thread: 72 to 95 Gflop/s against 85 to 109).
"""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from .kernels import Kernels
from .memory import room

_SOURCE = r"""
/* C[M,N] = A[M,K] B[K,N], with up to TALL rows of A at a time, whose sums stay in registers while a panel of B, which stays
   in the first cache, passes. */
static void pack_block(const real *B, long row, long column, real *P, long deep, long N) {
  for (long j = 0; j < N; j += PANEL) {
    const long wide = N - j < PANEL ? N - j : PANEL;
    for (long k = 0; k < deep; k++, P += PANEL) {
      const real *restrict b = B + k * row + j * column;
      real *restrict p = P;
      if (wide == PANEL && column == 1) for (long l = 0; l < PANEL; l++) p[l] = b[l];
      else for (long l = 0; l < PANEL; l++) p[l] = l < wide ? b[l * column] : ZERO;
    }
  }
}
void pack(const real *B, real *P, long K, long N) {
  for (long k = 0; k < K; k += DEEP) pack_block(B + k * N, N, 1, P + k * panels(N) * PANEL, K - k < DEEP ? K - k : DEEP, N);
}
static __attribute__((noinline)) void store_part(int m, const real *sums, real *C, long N, long wide, int first) {
  for (int i = 0; i < m; i++) for (long l = 0; l < wide; l++) C[i * N + l] = sums[i * PANEL + l] + (first ? ZERO : C[i * N + l]);
}
static inline __attribute__((always_inline)) void tile(const int m, int first, long deep, const real *A, long row, long column,
    const real *P, real *C, long N, long wide) {
  /* Unrolled by request: at -O2 the sums would live in memory, which makes the product half as fast. */
  vec c[TALL][2];
#pragma GCC unroll 12
  for (int i = 0; i < m; i++) c[i][0] = c[i][1] = (vec){0};
  if (!first && wide >= PANEL)
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { c[i][0] = *(vec *)(C + i * N); c[i][1] = *(vec *)(C + i * N + LANES); }
  for (long k = 0; k < deep; k++) {
    vec b0 = *(const vec *)(P + k * PANEL), b1 = *(const vec *)(P + k * PANEL + LANES);
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { real a = A[i * row + k * column]; c[i][0] += a * b0; c[i][1] += a * b1; }
  }
  if (wide >= PANEL) {
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { *(vec *)(C + i * N) = c[i][0]; *(vec *)(C + i * N + LANES) = c[i][1]; }
  } else {
    real sums[TALL][PANEL];
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { *(vec *)sums[i] = c[i][0]; *(vec *)(sums[i] + LANES) = c[i][1]; }
    store_part(m, sums[0], C, N, wide, first);
  }
}
#define TILE(m) case m: tile(m, first, deep, a, row, column, P, c, N, wide); break;
#if TALL == 12
#define TILES TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#else
#define TILES TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#endif
/* M rows of A against one panel, in tiles of equal height: 16 rows as 8 + 8 keep the multipliers busier than 12 + 4. */
static inline __attribute__((always_inline)) void against_panel(int first, long M, long deep, const real *A, long row, long column,
    const real *P, real *C, long N, long wide) {
  const long tiles = (M + TALL - 1) / TALL;
  for (long q = 0; q < tiles; q++) {
    const long i = M * q / tiles; const real *a = A + i * row; real *c = C + i * N;
    switch (M * (q + 1) / tiles - i) { TILES }
  }
}
static __attribute__((noinline)) void rows_against_panel(int first, long M, long deep, const real *A, long K, const real *P, real *C, long N,
    long wide) {
  against_panel(first, M, deep, A, K, 1, P, C, N, wide);
}
void product(long M, long N, long K, const real *A, const real *P, real *C) {
  for (long k = 0; k < K; k += DEEP) {
    const long deep = K - k < DEEP ? K - k : DEEP;
    const real *p = P + k * panels(N) * PANEL;
    for (long j = 0; j < N; j += PANEL, p += deep * PANEL) {
      rows_against_panel(k == 0, M, deep, A + k, K, p, C + j, N, N - j);
    }
  }
}
/* The same product for several time steps; rows of a step lie together, and those of all steps if a thread has all rows. */
void product_over(long steps, long R, long B, long N, long K, const real *A, const real *P, real *C, long C_rows) {
  if (R == B && R == C_rows) product(steps * R, N, K, A, P, C);
  else for (long s = 0; s < steps; s++) product(R, N, K, A + s * B * K, P, C + s * C_rows * N);
}
#define BROAD 512
/* Rows low..high of C = A B, where A and B may be transposed. Blocks of B are packed into memory of the thread's own;
   a chunk of A's rows stays in the second cache while all panels of the block pass. */
static inline __attribute__((always_inline)) void blocks(const real *A, const real *B, real *C, real *P, long a_row, long a_column,
    long b_row, long b_column, long N, long K, long low, long high) {
  for (long j0 = 0; j0 < N; j0 += BROAD) {
    const long broad = N - j0 < BROAD ? N - j0 : BROAD;
    for (long k = 0; k < K; k += DEEP) {
      const long deep = K - k < DEEP ? K - k : DEEP;
      pack_block(B + k * b_row + j0 * b_column, b_row, b_column, P, deep, broad);
      for (long i = low; i < high; i += (8 * TALL)) {
        const long M = high - i < (8 * TALL) ? high - i : (8 * TALL);
        const real *a = A + i * a_row + k * a_column;
        const real *p = P;
        for (long j = 0; j < broad; j += PANEL, p += deep * PANEL) {
          real *c = C + i * N + j0 + j;
          against_panel(k == 0, M, deep, a, a_row, a_column, p, c, N, broad - j);
        }
      }
    }
  }
}
void matmul(const real *A, const real *B, real *C, real *P, long a_row, long a_column, long b_row, long b_column, long N, long K,
    long thread, long low, long high) {
  P += thread * DEEP * BROAD;
  if (a_column == 1) blocks(A, B, C, P, a_row, 1, b_row, b_column, N, K, low, high);
  else blocks(A, B, C, P, 1, a_column, b_row, b_column, N, K, low, high);
}
"""
_kernels = Kernels(_SOURCE)
_PACKED = 256 * 512
_FLOPS_PER_ELEMENT = 64


@functools.cache
def addresses(dtype: torch.dtype) -> object:
    """Where `pack`, `product` and `product_over` are, for emitted code; raises Refused where they cannot be compiled."""
    library = _kernels.loaded(dtype)
    functions = (library.pack, library.product, library.product_over)
    return (ctypes.c_void_p * len(functions))(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions))


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` of two matrices on the CPU, as a new tensor; torch's own product where ours has no form for it."""
    if not _fits(a, b):
        return torch.mm(a, b)
    (rows, inner), columns = a.shape, b.shape[1]
    result = room((rows, columns), a.dtype)
    work = rows * columns * inner // _FLOPS_PER_ELEMENT
    packed = a.new_empty(_kernels.threads(rows, work) * _PACKED)
    sizes = (*a.stride(), *b.stride(), columns, inner)
    _kernels.run("matmul", (a, b, result, packed), (), sizes, rows, work)
    return result


def _fits(a: Tensor, b: Tensor) -> bool:
    plain = a.dtype is b.dtype and a.dtype in (torch.float32, torch.float64) and a.device.type == b.device.type == "cpu"
    return plain and min(*a.shape, *b.shape) > 0 and 1 in a.stride() and _kernels.ready(a.dtype)

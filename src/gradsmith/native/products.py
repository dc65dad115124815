"""Matrix products in C: of weights packed once with the rows of one time step, and of whole time courses.

A BLAS packs its operands at every call; a weight that is used at every time step is packed once here. torch's own product
of large matrices (`aten.mm`) asks MKL, which on the processors of others leaves out their widest vectors: an AMD EPYC
(Zen 5), float32, 1 thread, 512 x 512 x 32000 and its two gradients: 93 to 116 Gflop/s, oneDNN 139 to 234, ours 212 to 255.
So it is ours where there is a compiler, else oneDNN's where torch has it, else `aten.mm`.
"""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from gradsmith.lab.process.torch_says import onednn_product

from .c_prelude import DEEP
from .kernels import Kernels
from .memory import room

_SOURCE = r"""
/* C[M,N] = A[M,K] B[K,N], with up to TALL rows of A at a time, whose sums stay in registers while a panel of B, which stays
   in the first cache, passes. */
static void pack_block(const real *B, long row, long column, real *P, long deep, long N) {
  for (long j = 0; j < N; j += PANEL, P += deep * PANEL) {
    const long wide = N - j < PANEL ? N - j : PANEL;
    const real *from = B + j * column;
    if (row == 1 && column != 1) {
      /* Of a transposed matrix a cache line at a time: a column further on, many lines fall on the same place of the cache. */
      for (long k0 = 0; k0 < deep; k0 += LANES) {
        const long k1 = deep - k0 < LANES ? deep : k0 + LANES;
        for (long l = 0; l < wide; l++) for (long k = k0; k < k1; k++) P[k * PANEL + l] = from[k + l * column];
        for (long l = wide; l < PANEL; l++) for (long k = k0; k < k1; k++) P[k * PANEL + l] = ZERO;
      }
    } else for (long k = 0; k < deep; k++) {
      const real *restrict b = from + k * row;
      real *restrict p = P + k * PANEL;
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
    const real *P, const real *ahead, real *C, long N, long wide) {
  /* Unrolled by request: at -O2 the sums would live in memory, which makes the product half as fast. */
  vec c[TALL][2];
#pragma GCC unroll 12
  for (int i = 0; i < m; i++) {
    c[i][0] = c[i][1] = (vec){0};
    if (ahead) { __builtin_prefetch(C + i * N, 1); __builtin_prefetch(C + i * N + LANES, 1); }
  }
  for (long k = 0; k < deep; k++) {
    vec b0 = *(const vec *)(P + k * PANEL), b1 = *(const vec *)(P + k * PANEL + LANES);
    if (ahead) __builtin_prefetch(ahead + k * LANES, 0, 2);
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { real a = A[i * row + k * column]; c[i][0] += a * b0; c[i][1] += a * b1; }
  }
  if (wide < PANEL) {
    real sums[TALL][PANEL];
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { *(vec *)sums[i] = c[i][0]; *(vec *)(sums[i] + LANES) = c[i][1]; }
    store_part(m, sums[0], C, N, wide, first);
  } else if (first) {
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { *(vec *)(C + i * N) = c[i][0]; *(vec *)(C + i * N + LANES) = c[i][1]; }
  } else {
#pragma GCC unroll 12
    for (int i = 0; i < m; i++) { *(vec *)(C + i * N) += c[i][0]; *(vec *)(C + i * N + LANES) += c[i][1]; }
  }
}
/* Where A lies tile by tile, row and column are -1; rows that are one row over and over lie 0 apart. */
#define TILE(m) case m: tile(m, first, deep, a, row < 0 ? 1 : row, row < 0 ? m : column, P, ahead, c, N, wide); break;
#if TALL == 12
#define TILES TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#else
#define TILES TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#endif
/* M rows of A against one panel, in tiles of equal height: 16 rows as 8 + 8 keep the multipliers busier than 12 + 4. What is far
   away, rows of a large C and the next of many panels, is fetched while the sums are made. */
static inline __attribute__((always_inline)) void against_panel(int first, long M, long deep, const real *A, long row, long column,
    const real *P, real *C, long N, long wide, const int far) {
  const long tiles = (M + TALL - 1) / TALL;
  for (long q = 0; q < tiles; q++) {
    const long i = M * q / tiles; const real *a = A + i * (row < 0 ? deep : row); real *c = C + i * N;
    const real *ahead = far ? P + deep * (PANEL + (q & 1) * LANES) : 0;
    switch (M * (q + 1) / tiles - i) { TILES }
  }
}
#define FUNCTION(name, row, column, far) static __attribute__((noinline)) void name(int first, long M, long deep, const real *A, \
    long stride, const real *P, real *C, long N, long wide) { against_panel(first, M, deep, A, row, column, P, C, N, wide, far); }
FUNCTION(rows_against_panel, stride, 1, 0)
FUNCTION(far_rows_against_panel, stride, 1, 1)
FUNCTION(columns_against_panel, 1, stride, 0)
FUNCTION(far_tiles_against_panel, -1, -1, 1)
/* Elements a power of two apart fall on a few places of the caches only. Where many panels pass, copying a block of A to where its
   elements are close costs less than that: rows with their distance changed, columns tile by tile. */
#define MANY (16 * PANEL)
#define LONG 512
#define HIGH (8 * TALL)
#define APART (DEEP + LANES)
static void copy_rows(const real *A, long row, long M, long deep, real *Q) {
  for (long i = 0; i < M; i++) __builtin_memcpy(Q + i * APART, A + i * row, deep * sizeof(real));
}
static void copy_columns(const real *A, long column, long M, long deep, real *Q) {
  const long tiles = (M + TALL - 1) / TALL;
  if (M % TALL == 0) for (long k = 0; k < deep; k++) {
    for (long q = 0; q < tiles; q++) __builtin_memcpy(Q + (q * deep + k) * TALL, A + k * column + q * TALL, TALL * sizeof(real));
  } else for (long k = 0; k < deep; k++) for (long q = 0; q < tiles; q++) {
    const long i = M * q / tiles, high = M * (q + 1) / tiles - i;
    for (long l = 0; l < high; l++) Q[i * deep + k * high + l] = A[k * column + i + l];
  }
}
void product(long M, long N, long K, const real *A, const real *P, real *C) {
  const int far = N * K * sizeof(real) > (1 << 19);
  for (long k = 0; k < K; k += DEEP) {
    const long deep = K - k < DEEP ? K - k : DEEP;
    const real *p = P + k * panels(N) * PANEL;
    for (long j = 0; j < N; j += PANEL, p += deep * PANEL) {
      if (far) far_rows_against_panel(k == 0, M, deep, A + k, K, p, C + j, N, N - j);
      else rows_against_panel(k == 0, M, deep, A + k, K, p, C + j, N, N - j);
    }
  }
}
/* The same product for several time steps, of which step s has the rows first[s] to first[s + 1], and `each` rows of A in each of
   them; a thread has R of them, from r0 on. With all rows, those of all steps lie together. Else each step of a dense C has room
   for R rows, and any other C has the rows that A has. */
void product_over(const long *first, long steps, long r0, long R, long B, long each, long N, long K, const real *A, const real *P,
    real *C, long dense) {
  if (R == B) { product((first[steps] - first[0]) * each, N, K, A, P, C); return; }
  for (long s = 0; s < steps; s++) {
    const long ahead = first[s] - first[0], left = first[s + 1] - first[s] - r0, rows = left < R ? left : R;
    if (rows > 0) product(rows * each, N, K, A + ahead * each * K, P, C + (dense ? s * R : ahead) * each * N);
  }
}
#define BROAD 1024
/* Rows low..high of C = A B, or C += A B, where A and B may be transposed. Blocks of B are packed into memory of the thread's own;
   a chunk of A's rows stays in the second cache while all panels of the block pass. */
void matmul(const real *A, const real *B, real *C, real *P, long a_row, long a_column, long b_row, long b_column, long N, long K,
    long add, long thread, long low, long high) {
  P += thread * (DEEP * BROAD + HIGH * APART);
  real *Q = P + DEEP * BROAD;
  for (long j0 = 0; j0 < N; j0 += BROAD) {
    const long broad = N - j0 < BROAD ? N - j0 : BROAD;
    const int copied = broad >= MANY && a_row + a_column > LONG;
    for (long k = 0; k < K; k += DEEP) {
      const long deep = K - k < DEEP ? K - k : DEEP;
      pack_block(B + k * b_row + j0 * b_column, b_row, b_column, P, deep, broad);
      for (long i = low; i < high; i += HIGH) {
        const long M = high - i < HIGH ? high - i : HIGH;
        const real *a = A + i * a_row + k * a_column, *p = P;
        const int first = k == 0 && !add;
        if (copied && a_column == 1) copy_rows(a, a_row, M, deep, Q);
        else if (copied) copy_columns(a, a_column, M, deep, Q);
        for (long j = 0; j < broad; j += PANEL, p += deep * PANEL) {
          real *c = C + i * N + j0 + j;
          if (copied && a_column == 1) far_rows_against_panel(first, M, deep, Q, APART, p, c, N, broad - j);
          else if (copied) far_tiles_against_panel(first, M, deep, Q, 0, p, c, N, broad - j);
          else if (a_column == 1) rows_against_panel(first, M, deep, a, a_row, p, c, N, broad - j);
          else columns_against_panel(first, M, deep, a, a_column, p, c, N, broad - j);
        }
      }
    }
  }
}
"""
_kernels = Kernels(_SOURCE)
_PACKED = DEEP * 1024 + 96 * (DEEP + 16)
"""Elements of a thread's own memory: a block of B and, for the tallest tiles and the widest vectors, a chunk of A."""
_FLOPS_PER_ELEMENT = 64


@functools.cache
def addresses(dtype: torch.dtype) -> object:
    """Where `pack`, `product` and `product_over` are, for emitted code; raises Refused where they cannot be compiled."""
    library = _kernels.loaded(dtype)
    functions = (library.pack, library.product, library.product_over)
    return (ctypes.c_void_p * len(functions))(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions))


def matmul(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """`a @ b` of two matrices, without autograd, by the fastest way of this CPU."""
    if _fits(a, b, out):
        result = room((a.shape[0], b.shape[1]), a.dtype) if out is None else out
        _run(a, b, result, add=False)
        return result
    if (product := onednn_product(a, b)) is not None:
        return product() if out is None else out.copy_(product())
    return torch.mm(a, b) if out is None else torch.mm(a, b, out=out)


def add_matmul(total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """`total += a @ b`, likewise."""
    if _fits(a, b, total):
        _run(a, b, total, add=True)
        return total
    product = onednn_product(a, b)
    return total.addmm_(a, b) if product is None else total.add_(product())


def _run(a: Tensor, b: Tensor, result: Tensor, add: bool) -> None:
    (rows, inner), columns = a.shape, b.shape[1]
    work = rows * columns * inner // _FLOPS_PER_ELEMENT
    packed = a.new_empty(_kernels.threads(rows, work) * _PACKED)
    sizes = (*a.stride(), *b.stride(), columns, inner, int(add))
    _kernels.run("matmul", (a, b, result, packed), (), sizes, rows, work)


def _fits(a: Tensor, b: Tensor, out: Tensor | None) -> bool:
    plain = a.dtype is b.dtype and a.dtype in (torch.float32, torch.float64) and a.device.type == b.device.type == "cpu"
    held = out is None or (out.is_contiguous() and out.dtype is a.dtype)
    return plain and held and min(*a.shape, *b.shape) > 0 and 1 in a.stride() and _kernels.ready(a.dtype)

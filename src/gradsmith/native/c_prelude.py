"""The C that every emitted plan starts with: types, functions that vectorise, and a small matrix product.

No torch headers: with them one file takes 38 s to compile, without them well under a second. exp and tanh are our
own because libm's are calls that keep a loop from being vectorised; they are accurate to 2 units in the last place.
"""

from __future__ import annotations

import torch

_FLOAT = r"""
typedef float real;
#define FN(name) name##f
static inline real gs_pow2(int n) { union { int i; float f; } u; u.i = (n + 127) << 23; return u.f; }
/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1) with |r| <= ln(2)/2: accurate near zero as well. */
static inline real gs_expm1_core(real x, int *n_out) {
  real n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  real r = (x - n * 0.693145751953125f) - n * 1.4286068202862268e-6f;
  real p = 1.9913500431e-4f;
  p = p * r + 1.3941229062e-3f; p = p * r + 8.3332743182e-3f; p = p * r + 4.1666351896e-2f;
  p = p * r + 1.6666666811e-1f; p = p * r + 5.0000000471e-1f; p = p * r * r + r;
  *n_out = (int)n;
  return p;
}
static inline real EXP(real x) {
  int n;
  real c = x > 89.0f ? 89.0f : x; c = c < -104.0f ? -104.0f : c;
  real p = gs_expm1_core(c, &n);
  return (p + 1.0f) * gs_pow2(n - (n >> 1)) * gs_pow2(n >> 1);  /* in two factors: 2^128 is not a float, e^88.7 is */
}
static inline real EXPM1(real x) {
  int n;
  real c = x > 89.0f ? 89.0f : x; c = c < -30.0f ? -30.0f : c;
  real p = gs_expm1_core(c, &n), s = gs_pow2(n - (n >> 1)) * gs_pow2(n >> 1);
  return p * s + (s - 1.0f);
}
static inline real TANH(real x) {
  int n;
  real c = x > 10.0f ? 10.0f : x; c = c < -10.0f ? -10.0f : c;
  real p = gs_expm1_core(c + c, &n), s = gs_pow2(n), e = p * s + (s - 1.0f);
  return e / (e + 2.0f);
}
static inline real SIGMOID(real x) {
  int n;
  real c = x > 87.0f ? 87.0f : x; c = c < -87.0f ? -87.0f : c;
  real p = gs_expm1_core(-c, &n), s = gs_pow2(n);
  return 1.0f / (1.0f + (p * s + s));
}
"""
_DOUBLE = r"""
typedef double real;
#define FN(name) name
#define EXP exp
#define EXPM1 expm1
#define TANH tanh
static inline real SIGMOID(real x) { return 1.0 / (1.0 + exp(-x)); }
"""
_COMMON = r"""
#define ONE ((real)1)
#define ZERO ((real)0)
#define ABS FN(fabs)
#define SQRT FN(sqrt)
#define LOG FN(log)
#define LOG1P FN(log1p)
#define LOG2 FN(log2)
#define SIN FN(sin)
#define COS FN(cos)
#define TAN FN(tan)
#define ATAN FN(atan)
#define ATAN2 FN(atan2)
#define SINH FN(sinh)
#define COSH FN(cosh)
#define ERF FN(erf)
#define FLOOR FN(floor)
#define CEIL FN(ceil)
#define TRUNC FN(trunc)
#define RINT FN(rint)
#define POW FN(pow)
static inline real LIFT(real x, real low) { return x < low ? low : x; }
static inline real CAP(real x, real high) { return x > high ? high : x; }

/* C[M,N] = A[M,K] B[K,N]. Small products: B in panels of 2*LANES columns, up to 6 rows at a time in registers.
   Large ones: the BLAS that torch brings, where it exports one. */
#define LANES (32 / (int)sizeof(real))
#define PANEL (2 * LANES)
typedef real vec __attribute__((vector_size(32), aligned(sizeof(real))));
typedef void (*blas_t)(const char *, const char *, const int *, const int *, const int *, const real *, const real *,
                       const int *, const real *, const int *, const real *, real *, const int *);
static inline long panels(long N) { return (N + PANEL - 1) / PANEL; }
static void pack(const real *B, real *P, long K, long N) {
  for (long j = 0; j < N; j += PANEL) {
    const long wide = N - j < PANEL ? N - j : PANEL;
    for (long k = 0; k < K; k++) {
      real *restrict p = P + j * K + k * PANEL;
      const real *restrict b = B + k * N + j;
      if (wide == PANEL) for (long l = 0; l < PANEL; l++) p[l] = b[l];
      else for (long l = 0; l < PANEL; l++) p[l] = l < wide ? b[l] : ZERO;
    }
  }
}
static inline __attribute__((always_inline)) void tile(const int m, long K, const real *A, const real *P, real *C, long N, long wide) {
  /* Unrolled by request: at -O2 the sums would live in memory, which makes the product half as fast. */
  vec c[6][2];
#pragma GCC unroll 6
  for (int i = 0; i < m; i++) c[i][0] = c[i][1] = (vec){0};
  for (long k = 0; k < K; k++) {
    vec b0 = *(const vec *)(P + k * PANEL), b1 = *(const vec *)(P + k * PANEL + LANES);
#pragma GCC unroll 6
    for (int i = 0; i < m; i++) { real a = A[i * K + k]; c[i][0] += a * b0; c[i][1] += a * b1; }
  }
#pragma GCC unroll 6
  for (int i = 0; i < m; i++) {
    if (wide >= PANEL) { *(vec *)(C + i * N) = c[i][0]; *(vec *)(C + i * N + LANES) = c[i][1]; }
    else for (int l = 0; l < wide; l++) C[i * N + l] = l < LANES ? c[i][0][l] : c[i][1][l - LANES];
  }
}
static void small_product(long M, long N, long K, const real *A, const real *P, real *C) {
  const long tiles = (M + 5) / 6;  /* of equal height: 8 rows as 4 + 4 keep the multipliers busier than 6 + 2 */
  for (long j = 0; j < N; j += PANEL) {
    const real *p = P + j * K; const long wide = N - j;
    for (long q = 0; q < tiles; q++) {
      const long i = M * q / tiles; const real *a = A + i * K; real *c = C + i * N + j;
      switch (M * (q + 1) / tiles - i) {
        case 6: tile(6, K, a, p, c, N, wide); break;
        case 5: tile(5, K, a, p, c, N, wide); break;
        case 4: tile(4, K, a, p, c, N, wide); break;
        case 3: tile(3, K, a, p, c, N, wide); break;
        case 2: tile(2, K, a, p, c, N, wide); break;
        case 1: tile(1, K, a, p, c, N, wide); break;
      }
    }
  }
}
static inline int is_large(long M, long N, long K) { return M >= 10 && (double)M * N * K > 150000.0; }
static void product(blas_t blas, long M, long N, long K, const real *A, const real *B, const real *P, real *C) {
  if (blas && is_large(M, N, K)) {
    int m = (int)M, n = (int)N, k = (int)K; real one = ONE, zero = ZERO;
    blas("N", "N", &n, &m, &k, &one, B, &n, A, &k, &zero, C, &n);
  } else small_product(M, N, K, A, P, C);
}
static inline char *align64(char *p) { return (char *)(((unsigned long)p + 63) & ~63ul); }
"""


def prelude(dtype: torch.dtype) -> str:
    kinds = "#include <math.h>\ntypedef unsigned char flag;\ntypedef long long whole;\n"
    return kinds + (_FLOAT if dtype is torch.float32 else _DOUBLE) + _COMMON

"""The C that every emitted plan starts with: types, and functions that vectorise.

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
  real p = gs_expm1_core(-c, &n), s = gs_pow2(n), y = 1.0f / (1.0f + (p * s + s));
  return x < -104.0f ? 0.0f : y;  /* as in double: x * sigmoid(x) is NaN at -inf, and not -inf */
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

/* How products.py lays a matrix out: in blocks of DEEP rows, and in each of them panels of two vectors of columns. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TALL 12
#else
#define VECTOR_BYTES 32
#define TALL 6
#endif
#define LANES (VECTOR_BYTES / (int)sizeof(real))
#define PANEL (2 * LANES)
typedef real vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real))));
static inline long panels(long N) { return (N + PANEL - 1) / PANEL; }
static inline long chunk(long R) { return R >= CHUNK_ROWS ? 1 : CHUNK_ROWS / R; }
static inline char *align64(char *p) { return (char *)(((unsigned long)p + 63) & ~63ul); }
"""
DEEP = 512
"""Rows of a block of a packed matrix: fewer would fit the first cache, but what a product adds to is read and written for each."""
CHUNK_ROWS = 48
"""Rows that a product should have at least: four tiles of the tallest kind."""


def prelude(dtype: torch.dtype) -> str:
    kinds = (
        f"#include <math.h>\ntypedef unsigned char flag;\ntypedef long long whole;\n"
        f"#define CHUNK_ROWS {CHUNK_ROWS}\n#define DEEP {DEEP}\n"
    )
    return kinds + (_FLOAT if dtype is torch.float32 else _DOUBLE) + _COMMON

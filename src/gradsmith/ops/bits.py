"""Masks of one bit per element. A bool tensor takes a byte per element, the mask that F.dropout saves four.

The bits are whole numbers and constants of the graph: a second derivative passes through what they select.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from gradsmith.native.kernels import Kernels
from gradsmith.native.memory import room
from gradsmith.ops.route import in_memory

_BYTES = 512  # per block of rows that a thread takes
KERNELS = Kernels(r"""
#define BYTES 512
void bits_pack(const real *like, const flag *mask, flag *bits, long n, long thread, long first, long last) {
  const long bytes = n / 8, end = last * BYTES < bytes ? last * BYTES : bytes;
  for (long i = first * BYTES; i < end; i++) {
    unsigned long eight;
    __builtin_memcpy(&eight, mask + 8 * i, 8);
    bits[i] = (flag)((eight * 0x0102040810204080ul) >> 56);  /* the lowest bit of each byte, side by side */
  }
  if (n % 8 && end == bytes) {
    flag rest = 0;
    for (long k = 0; k < n % 8; k++) rest |= (flag)(mask[8 * bytes + k] << k);
    bits[bytes] = rest;
  }
}
void bits_select(const real *x, const flag *bits, real *y, double scale, long n, long thread, long first, long last) {
  const real s = (real)scale;
  const long low = first * BYTES * 8, high = last * BYTES * 8 < n ? last * BYTES * 8 : n;
  long i = low;
  for (; i + 8 <= high; i += 8) {
    const unsigned byte = bits[i >> 3];
    #pragma GCC unroll 8
    for (int k = 0; k < 8; k++) y[i + k] = (byte >> k) & 1 ? x[i + k] * s : ZERO;
  }
  for (; i < high; i++) y[i] = (bits[i >> 3] >> (i & 7)) & 1 ? x[i] * s : ZERO;
}
""")


def pack(mask: Tensor) -> Tensor:
    """Eight elements of a bool tensor per byte, the first in the lowest bit; the last byte is filled with zeros.

    >>> pack(torch.tensor([True, False, True]))
    tensor([5], dtype=torch.uint8)
    """
    if mask.dtype != torch.bool:
        raise TypeError(f"pack: the mask has dtype {mask.dtype}, expected torch.bool.")
    like = torch.empty(0) if mask.device.type == "cpu" else None
    if like is not None and type(mask) is Tensor and in_memory(like, small=True) and KERNELS.ready(torch.float32):
        n = mask.numel()
        bits = torch.empty(-(-n // 8), dtype=torch.uint8)
        KERNELS.run("bits_pack", [like, mask.contiguous(), bits], [], [n], -(-bits.numel() // _BYTES), n)
        return bits
    eights = F.pad(mask.reshape(-1).to(torch.uint8), (0, -mask.numel() % 8)).reshape(-1, 8)
    return (eights << _places(mask)).sum(1, dtype=torch.uint8)


def unpack(bits: Tensor, shape: torch.Size) -> Tensor:
    """The mask that `pack` packed.

    >>> unpack(torch.tensor([5], dtype=torch.uint8), torch.Size([3]))
    tensor([ True, False,  True])
    """
    if bits.dtype != torch.uint8 or bits.numel() != -(-shape.numel() // 8):
        wanted = f"{-(-shape.numel() // 8)} bytes (uint8) for a mask of shape {tuple(shape)}"
        raise ValueError(f"unpack: expected {wanted}, got {bits.numel()} elements of {bits.dtype}.")
    eights = bits.unsqueeze(1) >> _places(bits) & 1
    return eights.reshape(-1)[: shape.numel()].reshape(shape).to(torch.bool)


def select(x: Tensor, bits: Tensor, scale: float = 1.0) -> Tensor:
    """x * scale where the bit is set, 0 elsewhere.

    >>> select(torch.ones(3), torch.tensor([5], dtype=torch.uint8), 2.0)
    tensor([2., 0., 2.])
    """
    if not torch.is_grad_enabled() and in_memory(x) and KERNELS.ready(x.dtype):
        y, n = room(x.shape, x.dtype), x.numel()
        KERNELS.run("bits_select", [x.contiguous(), bits, y], [scale], [n], -(-bits.numel() // _BYTES), n)
        return y
    return torch.where(unpack(bits, x.shape), x * scale if scale != 1.0 else x, 0)


def _places(like: Tensor) -> Tensor:
    return torch.arange(8, dtype=torch.uint8, device=like.device)

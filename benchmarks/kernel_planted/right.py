"""Twelve Functions whose kernels look suspicious and are right: overlapping reads, atomics, padding, locks, work in place.

Run by `benchmarks/kernels.py planted`: each has to be verified, without an error or a warning.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def smooth(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x_ptr + i - 1, mask=(i > 0) & (i < n), other=0.0)
    after = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(y_ptr + i, 0.5 * (before + after), mask=i < n)


class Smoothed(torch.autograd.Function):
    """Programs read what their neighbours read, and store into another tensor."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        smooth[(triton.cdiv(x.numel(), 8),)](x.contiguous(), y, x.numel(), BLOCK=8)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        grad = torch.empty_like(grad_output)
        smooth[(triton.cdiv(grad.numel(), 8),)](grad_output.contiguous(), grad, grad.numel(), BLOCK=8)
        return grad


@triton.jit
def exponential(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class ExpInPlace(torch.autograd.Function):
    """In place by design, and said so."""

    @staticmethod
    def forward(ctx, x):
        if not x.is_contiguous():
            raise ValueError("x has to be contiguous")
        ctx.mark_dirty(x)
        exponential[(triton.cdiv(x.numel(), 8),)](x, x.numel(), BLOCK=8)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


@triton.jit
def weight_gradient(x_ptr, g_ptr, d_ptr, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    mask = j < columns
    x = tl.load(x_ptr + row * columns + j, mask=mask, other=0.0)
    g = tl.load(g_ptr + row * columns + j, mask=mask, other=0.0)
    tl.atomic_add(d_ptr + j, x * g, mask=mask)


class ScaledColumns(torch.autograd.Function):
    """All programs add to one row, by atomics."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad = torch.zeros_like(weight)
        weight_gradient[(len(x),)](
            x.contiguous(), grad_output.contiguous(), grad, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
        )
        return grad_output * weight, grad


@triton.jit
def centre(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=0.0)
    mean = tl.sum(x, 0) / columns
    tl.store(y_ptr + row * BLOCK + j, x - mean)


class CentredInPadding(torch.autograd.Function):
    """Whole blocks are stored into a buffer that has room for them; the padding is cut off."""

    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        padded = x.new_empty(rows, block)
        centre[(rows,)](x.contiguous(), padded, columns, BLOCK=block)
        return padded[:, :columns].contiguous()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(1, keepdim=True)


@triton.jit
def sine(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(y_ptr + i, tl.sin(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)


class PersistentSine(torch.autograd.Function):
    """Two programs walk over all blocks: the grid is shorter than the tensor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        sine[(2,)](x.contiguous(), y, x.numel(), BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


@triton.jit
def locked_total(x_ptr, y_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr, tl.load(y_ptr) + tl.sum(x * x, 0))
    tl.atomic_xchg(lock_ptr, 0)


class LockedTotal(torch.autograd.Function):
    """A plain sum in memory, behind a lock."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y, lock = x.new_zeros(1), torch.zeros(1, dtype=torch.int32, device=x.device)
        locked_total[(triton.cdiv(x.numel(), 8),)](x.contiguous(), y, lock, x.numel(), BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad_output


@triton.jit
def gather_clamped(x_ptr, y_ptr, n, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.minimum(i // 2, n - 1))
    tl.store(y_ptr + i, x * 1.5, mask=i < m)


class RepeatedTwice(torch.autograd.Function):
    """No mask on the load: the index stops at the last element."""

    @staticmethod
    def forward(ctx, x):
        n = x.numel()
        y = x.new_empty(2 * n)
        gather_clamped[(triton.cdiv(2 * n, 8),)](x.contiguous(), y, n, 2 * n, BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 1.5 * grad_output.reshape(-1, 2).sum(1)


@triton.jit
def block_squares(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    i = b * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(p_ptr + b, tl.sum(x * x, 0))


@triton.jit
def sum_of_blocks(p_ptr, y_ptr, many, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr, tl.sum(tl.load(p_ptr + i, mask=i < many, other=0.0), 0))


class TwoStageSum(torch.autograd.Function):
    """The second launch reads what programs of the first one stored, and no more."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        blocks = triton.cdiv(x.numel(), 8)
        parts, y = x.new_empty(triton.next_power_of_2(blocks)), x.new_empty(())
        block_squares[(blocks,)](x.contiguous(), parts, x.numel(), BLOCK=8)
        sum_of_blocks[(1,)](parts, y, blocks, BLOCK=triton.next_power_of_2(blocks))
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad_output


@triton.jit
def into_columns(x_ptr, y_ptr, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + j, mask=j < columns, other=0.0)
    tl.store(y_ptr + row * y_stride + j, 2.0 * x, mask=j < columns)


class Bordered(torch.autograd.Function):
    """The kernel fills the inside of a larger tensor through a view; torch fills the border."""

    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        x = x.contiguous()
        y = x.new_zeros(rows + 2, columns + 2)
        inside = y[1:-1, 1:-1]
        block = triton.next_power_of_2(columns)
        into_columns[(rows,)](x, inside, columns, x.stride(0), inside.stride(0), BLOCK=block)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 2.0 * grad_output[1:-1, 1:-1]


@triton.jit
def flip(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = n - 1 - (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    x = tl.load(x_ptr + i, mask=i >= 0, other=0.0)
    tl.store(y_ptr + (n - 1 - i), x, mask=i >= 0)


class Flipped(torch.autograd.Function):
    """Addresses run backwards, and the mask is at the lower end."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        flip[(triton.cdiv(x.numel(), 8),)](x.contiguous(), y, x.numel(), BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.flip(0)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16), tl.program_id(0) * 16 + tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for start in range(0, k, BLOCK):
        part = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + i[:, None] * k + part[None, :], mask=(i[:, None] < m) & (part[None, :] < k), other=0.0)
        b = tl.load(b_ptr + part[:, None] * n + j[None, :], mask=(part[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


class Product(torch.autograd.Function):
    """Blocks of 16 over sizes that are none of 16: every program reads all of `a`."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        (m, k), n = a.shape, b.shape[1]
        if m > 16:
            raise ValueError("at most 16 rows")
        c = a.new_empty(m, n)
        product[(triton.cdiv(n, 16),)](a.contiguous(), b.contiguous(), c, m, n, k, BLOCK=16)
        return c

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output @ b.t(), a.t() @ grad_output


@triton.jit
def largest(x_ptr, y_ptr, which_ptr, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=-float("inf"))
    at = tl.argmax(x, 0)
    tl.store(y_ptr + row, tl.max(x, 0))
    tl.store(which_ptr + row, at)


class Largest(torch.autograd.Function):
    """Masked lanes hold minus infinity, and an index of another type is stored beside the numbers."""

    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        y = x.new_empty(rows)
        which = torch.empty(rows, dtype=torch.int32, device=x.device)
        largest[(rows,)](x.contiguous(), y, which, columns, BLOCK=16)
        ctx.save_for_backward(which)
        ctx.columns = columns
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (which,) = ctx.saved_tensors
        grad = grad_output.new_zeros(len(which), ctx.columns)
        return grad.scatter(1, which.long()[:, None], grad_output[:, None])


gradsmith_inputs = {
    "Smoothed": lambda: (torch.randn(21, requires_grad=True),),
    "ExpInPlace": lambda: (torch.randn(21, requires_grad=True),),
    "ScaledColumns": lambda: (torch.randn(6, 11, requires_grad=True), torch.randn(11, requires_grad=True)),
    "CentredInPadding": lambda: (torch.randn(4, 11, requires_grad=True),),
    "PersistentSine": lambda: (torch.randn(37, requires_grad=True),),
    "LockedTotal": lambda: (torch.randn(21, requires_grad=True),),
    "RepeatedTwice": lambda: (torch.randn(11, requires_grad=True),),
    "TwoStageSum": lambda: (torch.randn(37, requires_grad=True),),
    "Bordered": lambda: (torch.randn(3, 11, requires_grad=True),),
    "Flipped": lambda: (torch.randn(21, requires_grad=True),),
    "Product": lambda: (torch.randn(5, 41, requires_grad=True), torch.randn(41, 23, requires_grad=True)),
    "Largest": lambda: (torch.randn(4, 11, requires_grad=True),),
}

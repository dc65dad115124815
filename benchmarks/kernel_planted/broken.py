"""Twelve Functions whose kernels access memory wrongly, each in its own way. EXPECTED says which rules may name it.

Run by `benchmarks/kernels.py planted`, and beside it `right.py`: kernels that look as suspicious and are right.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

EXPECTED = {
    "Transposed": {"out-of-bounds-store", "race", "wrong-gradient", "uninitialised-memory"},
    "SmoothedInPlace": {"race"},
    "RaggedScale": {"race", "out-of-bounds-store", "out-of-bounds-load"},
    "TwoStageSum": {"uninitialised-memory"},
    "Histogram": {"race"},
    "AddedToGarbage": {"uninitialised-memory"},
    "Looked": {"race"},
    "SwappedGrid": {"grid-misses-tail", "uninitialised-memory"},
    "Reversed": {"out-of-bounds-load"},
    "SplitProduct": {"race"},
    "ColumnTotals": {"out-of-bounds-store"},
    "RunningTotal": {"race"},
}
# The kernel's line that is at fault, by a piece of its text; findings of the guard should stand there.
AT = {
    "Transposed": "tl.store(y_ptr + j[None, :]",
    "SmoothedInPlace": "tl.",
    "RaggedScale": "tl.",
    "Histogram": "tl.store(h_ptr + k",
    "Looked": "tl.store(d_ptr + ids",
    "Reversed": "x_ptr + (n - 1 - i)",
    "SplitProduct": "tl.store(c_ptr + at",
    "ColumnTotals": "tl.atomic_add(t_ptr + j",
    "RunningTotal": "tl.",
}


@triton.jit
def transpose(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
    # A row of the result has as many elements as x has rows.
    tl.store(y_ptr + j[None, :] * columns + i[:, None], 3.0 * x, mask=mask)


class Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        y = torch.empty(columns, rows, dtype=x.dtype, device=x.device)
        transpose[(triton.cdiv(rows, 8), triton.cdiv(columns, 8))](x.contiguous(), y, rows, columns, BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 3.0 * grad_output.t()


@triton.jit
def smooth(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x_ptr + i - 1, mask=(i > 0) & (i < n), other=0.0)
    after = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x_ptr + i, 0.5 * (before + after), mask=i < n)


class SmoothedInPlace(torch.autograd.Function):
    """Neighbours are read from the tensor that other programs are writing to."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        smooth[(triton.cdiv(x.numel(), 8),)](y, x.numel(), BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        grad = torch.zeros_like(grad_output)
        grad[:-1] += 0.5 * grad_output[1:]
        grad[1:] += 0.5 * grad_output[:-1]
        return grad


@triton.jit
def scale_segments(x_ptr, y_ptr, start_ptr, longest, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    start = tl.load(start_ptr + segment)
    i = tl.arange(0, BLOCK)
    # Shorter segments end before the longest.
    x = tl.load(x_ptr + start + i, mask=i < longest, other=0.0)
    tl.store(y_ptr + start + i, x * (segment + 1.0), mask=i < longest)


class RaggedScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, starts):
        lengths = starts[1:] - starts[:-1]
        ctx.save_for_backward(lengths)
        y = torch.empty_like(x)
        scale_segments[(len(lengths),)](x.contiguous(), y, starts, int(lengths.max()), BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (lengths,) = ctx.saved_tensors
        factors = torch.arange(1, len(lengths) + 1, device=lengths.device).repeat_interleave(lengths)
        return grad_output * factors, None


@triton.jit
def block_sums(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    i = b * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(p_ptr + b, tl.sum(x * x, 0))


@triton.jit
def sum_of_blocks(p_ptr, y_ptr, MANY: tl.constexpr):
    tl.store(y_ptr, tl.sum(tl.load(p_ptr + tl.arange(0, MANY)), 0))


class TwoStageSum(torch.autograd.Function):
    """The second kernel sums up to the next power of two, and nobody has filled the rest."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        blocks = triton.cdiv(x.numel(), 8)
        many = triton.next_power_of_2(blocks)
        parts, y = x.new_empty(many), x.new_empty(())
        block_sums[(blocks,)](x.contiguous(), parts, x.numel(), BLOCK=8)
        sum_of_blocks[(1,)](parts, y, MANY=many)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad_output


@triton.jit
def histogram(x_ptr, k_ptr, h_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    k = tl.load(k_ptr + i, mask=mask, other=0)
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    tl.store(h_ptr + k, tl.load(h_ptr + k, mask=mask, other=0.0) + x, mask=mask)


class Histogram(torch.autograd.Function):
    """One program, and two of its lanes may meet in one bin."""

    @staticmethod
    def forward(ctx, x, bins):
        ctx.save_for_backward(bins)
        h = x.new_zeros(5)
        histogram[(1,)](x.contiguous(), bins, h, x.numel(), BLOCK=16)
        return h

    @staticmethod
    def backward(ctx, grad_output):
        (bins,) = ctx.saved_tensors
        return grad_output[bins], None


@triton.jit
def add_rows(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=0.0)
    tl.atomic_add(y_ptr + j, x, mask=j < columns)


class AddedToGarbage(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = len(x)
        y = torch.empty_like(x[0])  # and not zeros
        add_rows[(len(x),)](x.contiguous(), y, x.shape[1], BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.rows, -1)


@triton.jit
def look_up_backward(g_ptr, ids_ptr, d_ptr, columns, BLOCK: tl.constexpr):
    token, j = tl.program_id(0), tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + token) * columns + j
    g = tl.load(g_ptr + token * columns + j, mask=j < columns, other=0.0)
    old = tl.load(d_ptr + ids, mask=j < columns, other=0.0)
    tl.store(d_ptr + ids, old + g, mask=j < columns)


class Looked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table[ids]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (ids,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        look_up_backward[(len(ids),)](grad_output.contiguous(), ids, grad, ctx.shape[1], BLOCK=8)
        return grad, None


@triton.jit
def halve(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    at = i[:, None] * columns + j[None, :]
    tl.store(y_ptr + at, 0.5 * tl.load(x_ptr + at, mask=mask, other=0.0), mask=mask)


class SwappedGrid(torch.autograd.Function):
    """Axis 0 of the grid counts blocks of columns, and the kernel takes it for rows."""

    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        y = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
        halve[(triton.cdiv(columns, 4), triton.cdiv(rows, 4))](x.contiguous(), y, rows, columns, BLOCK=4)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 0.5 * grad_output


@triton.jit
def reverse(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # The lanes beyond the end read before the beginning.
    x = tl.load(x_ptr + (n - 1 - i))
    tl.store(y_ptr + i, x, mask=i < n)


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        reverse[(triton.cdiv(x.numel(), 8),)](x.contiguous(), y, x.numel(), BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.flip(0)


@triton.jit
def product_of_a_part(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 16), tl.arange(0, 16)
    part = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i[:, None] * k + part[None, :], mask=(i[:, None] < m) & (part[None, :] < k), other=0.0)
    b = tl.load(b_ptr + part[:, None] * n + j[None, :], mask=(part[:, None] < k) & (j[None, :] < n), other=0.0)
    at = i[:, None] * n + j[None, :]
    inside = (i[:, None] < m) & (j[None, :] < n)
    c = tl.load(c_ptr + at, mask=inside, other=0.0)
    tl.store(c_ptr + at, c + tl.dot(a, b), mask=inside)


class SplitProduct(torch.autograd.Function):
    """The inner dimension is split over programs, and each adds its part without an atomic."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        (m, k), n = a.shape, b.shape[1]
        c = a.new_zeros(m, n)
        product_of_a_part[(triton.cdiv(k, 16),)](a.contiguous(), b.contiguous(), c, m, n, k, BLOCK=16)
        return c

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output @ b.t(), a.t() @ grad_output


@triton.jit
def column_totals(x_ptr, t_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=0.0)
    tl.atomic_add(t_ptr + j, x)


class ColumnTotals(torch.autograd.Function):
    """Atomics need a mask, too: they add zero to whatever lies behind the totals."""

    @staticmethod
    def forward(ctx, x):
        ctx.rows = len(x)
        totals = x.new_zeros(x.shape[1])
        column_totals[(len(x), triton.cdiv(x.shape[1], 8))](x.contiguous(), totals, *x.shape, BLOCK=8)
        return totals

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.rows, -1)


@triton.jit
def running_total(x_ptr, y_ptr, carry_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    carry = tl.load(carry_ptr)
    tl.store(y_ptr + i, carry + tl.cumsum(x, 0), mask=i < n)
    tl.store(carry_ptr, carry + tl.sum(x, 0))


class RunningTotal(torch.autograd.Function):
    """Each program takes over what the one before it left: programs have no order."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        running_total[(triton.cdiv(x.numel(), 8),)](x.contiguous(), y, x.new_zeros(1), x.numel(), BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.flip(0).cumsum(0).flip(0)


gradsmith_inputs = {
    "Transposed": lambda: (torch.randn(5, 11, requires_grad=True),),
    "SmoothedInPlace": lambda: (torch.randn(21, requires_grad=True),),
    "RaggedScale": lambda: (torch.randn(19, requires_grad=True), torch.tensor([0, 3, 12, 19])),
    "TwoStageSum": lambda: (torch.randn(37, requires_grad=True),),
    "Histogram": lambda: (torch.randn(9, requires_grad=True), torch.tensor([0, 1, 4, 1, 2, 0, 3, 3, 1])),
    "AddedToGarbage": lambda: (torch.randn(6, 11, requires_grad=True),),
    "Looked": lambda: (torch.randn(7, 5, requires_grad=True), torch.tensor([0, 3, 3, 1, 6])),
    "SwappedGrid": lambda: (torch.randn(9, 5, requires_grad=True),),
    "Reversed": lambda: (torch.randn(21, requires_grad=True),),
    "SplitProduct": lambda: (torch.randn(5, 41, requires_grad=True), torch.randn(41, 7, requires_grad=True)),
    "ColumnTotals": lambda: (torch.randn(4, 13, requires_grad=True),),
    "RunningTotal": lambda: (torch.randn(29, requires_grad=True),),
}

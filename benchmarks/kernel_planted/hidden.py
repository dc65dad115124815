"""Eight Functions whose kernels are right on the example, and wrong on inputs that gradsmith makes of it.

Run by `benchmarks/kernels.py planted`, at level standard. EXPECTED says which rules may name it, as an error or a warning.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

EXPECTED = {
    "FixedBlock": {
        "uninitialised-memory",
        "grid-misses-tail",
        "wrong-gradient",
        "shape-dependent",
        "nonfinite-gradient",
    },
    "WholeBlocks": {"out-of-bounds-store", "out-of-bounds-load"},
    "ShortGrid": {
        "grid-misses-tail",
        "uninitialised-memory",
        "wrong-gradient",
        "shape-dependent",
        "nonfinite-gradient",
    },
    "OneProgram": {"race", "wrong-gradient", "shape-dependent"},
    "IgnoresStrides": {"layout-dependent"},
    "UniqueIds": {"race", "wrong-gradient", "shape-dependent", "value-dependent"},
    "SquareOnly": {"out-of-bounds-store", "out-of-bounds-load", "race", "wrong-gradient", "shape-dependent"},
    "LongestFirst": {"wrong-gradient", "value-dependent", "shape-dependent", "race", "uninitialised-memory"},
}


@triton.jit
def row_norms(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=0.0)
    tl.store(y_ptr + row, tl.sum(x * x, 0))


class FixedBlock(torch.autograd.Function):
    """Rows of more than 16 elements are cut off."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.new_empty(len(x))
        row_norms[(len(x),)](x.contiguous(), y, x.shape[1], BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad_output[:, None]


@triton.jit
def cube(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x * x)


class WholeBlocks(torch.autograd.Function):
    """No mask anywhere: right for multiples of 16."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        cube[(triton.cdiv(x.numel(), 16),)](x.contiguous(), y, BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3.0 * x * x * grad_output


class ShortGrid(torch.autograd.Function):
    """The rest of a division is dropped: right for multiples of 16."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        blocks = x.numel() >> 4
        cube[(blocks,)](x.contiguous(), y, BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3.0 * x * x * grad_output


@triton.jit
def total(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr, tl.sum(tl.sin(x), 0))


class OneProgram(torch.autograd.Function):
    """The sum of one block, which every program stores into the same place."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.new_empty(())
        total[(triton.cdiv(x.numel(), 32),)](x.contiguous(), y, x.numel(), BLOCK=32)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x.cos() * grad_output


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2.0 * tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)


class IgnoresStrides(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        double[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return 2.0 * grad_output


@triton.jit
def add_tokens(g_ptr, ids_ptr, d_ptr, columns, BLOCK: tl.constexpr):
    token, j = tl.program_id(0), tl.arange(0, BLOCK)
    at = tl.load(ids_ptr + token) * columns + j
    g = tl.load(g_ptr + token * columns + j, mask=j < columns, other=0.0)
    tl.store(d_ptr + at, g, mask=j < columns)


class UniqueIds(torch.autograd.Function):
    """A row that is asked for twice gets the gradient of one of its uses."""

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
        add_tokens[(len(ids),)](grad_output.contiguous(), ids, grad, ctx.shape[1], BLOCK=8)
        return grad, None


@triton.jit
def transpose(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + j[None, :] * columns + i[:, None], x, mask=mask)


class SquareOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        y = x.new_zeros(columns, rows)
        transpose[(1,)](x.contiguous(), y, rows, columns, BLOCK=triton.next_power_of_2(max(rows, columns)))
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.t()


@triton.jit
def segment_sums(x_ptr, start_ptr, y_ptr, longest, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    start, end = tl.load(start_ptr + segment), tl.load(start_ptr + segment + 1)
    i = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=(i < end) & (i < start + longest), other=0.0)
    tl.store(y_ptr + segment, tl.sum(x, 0))


class LongestFirst(torch.autograd.Function):
    """The first segment is taken for the longest."""

    @staticmethod
    def forward(ctx, x, starts):
        ctx.save_for_backward(starts)
        y = x.new_empty(len(starts) - 1)
        longest = int(starts[1] - starts[0])
        segment_sums[(len(y),)](x.contiguous(), starts, y, longest, BLOCK=triton.next_power_of_2(x.numel()))
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (starts,) = ctx.saved_tensors
        return grad_output.repeat_interleave(starts[1:] - starts[:-1]), None


gradsmith_inputs = {
    "FixedBlock": lambda: (torch.randn(3, 11, requires_grad=True),),
    "WholeBlocks": lambda: (torch.randn(32, requires_grad=True),),
    "ShortGrid": lambda: (torch.randn(32, requires_grad=True),),
    "OneProgram": lambda: (torch.randn(21, requires_grad=True),),
    "IgnoresStrides": lambda: (torch.randn(4, 9, requires_grad=True),),
    "UniqueIds": lambda: (torch.randn(7, 5, requires_grad=True), torch.tensor([5, 0, 3, 1])),
    "SquareOnly": lambda: (torch.randn(6, 6, requires_grad=True),),
    "LongestFirst": lambda: (torch.randn(12, requires_grad=True), torch.tensor([0, 5, 8, 12])),
}

"""Sizes that kernels get wrong are tried: one element more than a block."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradsmith as gs

pytest.importorskip("triton")
ROW_NORMS = """
import torch
import triton
import triton.language as tl


@triton.jit
def row_norms(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=0.0)
    tl.store(y_ptr + row, tl.sum(x * x, 0))


class RowNorms(torch.autograd.Function):
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


gradsmith_inputs = {"RowNorms": lambda: (torch.randn(3, 11, requires_grad=True),)}
"""


@pytest.mark.deep
def test_a_row_longer_than_the_block_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(ROW_NORMS, encoding="utf-8")
    (found,) = [f for f in gs.check_paths(path, level="standard").findings if f.rule == "shape-dependent"]
    assert "with size 17 in dim 1 of 'x'" in found.message
    # What was measured is a sample: the message says so, and names no cause that the element at fault contradicts.
    assert found.cause == "some-elements" and "elements that were measured" in found.message

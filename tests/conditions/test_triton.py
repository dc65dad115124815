"""Triton without a GPU: kernels run under Triton's interpreter, and the report says so.

triton is no dependency of ours. To run the deep tests here: unpack its wheel somewhere and put that on PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from gradsmith import check_paths
from gradsmith.findings import Report

INSTALLED = importlib.util.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not INSTALLED, reason="triton is not installed")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: kernels run there")
COLUMN = "triton interpreter"
# tl.sum is itself a kernel of Triton's library: it only works if the interpreter was chosen before triton was imported.
WEIGHTED = """
import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, inside, other=0)
    w = tl.load(w_ptr + at, inside, other=0)
    tl.store(y_ptr + row, tl.sum(x * x * w))


@triton.jit
def backward_kernel(x_ptr, w_ptr, g_ptr, dx_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, inside, other=0)
    w = tl.load(w_ptr + at, inside, other=0)
    tl.store(dx_ptr + row * columns + at, 2 * x * w * tl.load(g_ptr + row), inside)


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x.new_empty(x.shape[0])
        forward_kernel[(x.shape[0],)](x.contiguous(), w.contiguous(), y, x.shape[1], BLOCK=8)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        x, w = (t.contiguous() for t in ctx.saved_tensors)
        dx = torch.empty_like(x)
        backward_kernel[(x.shape[0],)](x, w, grad_output.contiguous(), dx, x.shape[1], BLOCK=8)
        return dx, grad_output @ x.square()


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Weighted": example}
"""


def checked(tmp_path: Path, source: str) -> Report:
    path = tmp_path / "weighted.py"
    path.write_text(source, encoding="utf-8")
    return check_paths(str(path))


@pytest.mark.skipif(INSTALLED, reason="triton is installed")
def test_without_triton_the_matrix_says_why(tmp_path: Path) -> None:
    report = checked(tmp_path, WEIGHTED)
    assert report.subjects[0].conditions[COLUMN] == "not tried: triton is not installed"
    assert report.subjects[0].verdict == "unverified"


@pytest.mark.skipif(INSTALLED, reason="triton is installed")
def test_a_file_that_imports_it_where_it_can_says_the_same(tmp_path: Path) -> None:
    guarded = WEIGHTED.replace("import triton\nimport triton.language as tl\n", "").replace("@triton.jit\n", "")
    guarded = guarded.replace(
        "import torch\n", "import torch\ntry:\n    import triton\nexcept ImportError:\n    pass\n", 1
    )
    report = checked(tmp_path, guarded.replace(", BLOCK: tl.constexpr", ""))
    assert report.subjects[0].conditions[COLUMN] == "not tried: triton is not installed"


@pytest.mark.deep
@needs_triton
@without_gpu
def test_a_right_kernel_is_verified_under_the_interpreter(tmp_path: Path) -> None:
    report = checked(tmp_path, WEIGHTED)
    assert not report.errors, report.errors
    assert report.subjects[0].verdict == "verified"
    assert report.subjects[0].conditions[COLUMN] == "works"
    assert any("Triton's interpreter on the CPU" in note for note in report.notes)


@pytest.mark.deep
@needs_triton
@without_gpu
def test_a_wrong_kernel_is_refuted_under_the_interpreter(tmp_path: Path) -> None:
    report = checked(tmp_path, WEIGHTED.replace("2 * x * w * tl.load", "x * w * tl.load"))
    assert [f.rule for f in report.errors] == ["wrong-gradient"]
    assert report.subjects[0].conditions[COLUMN] == "works"


@pytest.mark.deep
@needs_triton
@without_gpu
def test_a_kernel_that_ignores_strides_is_named(tmp_path: Path) -> None:
    report = checked(tmp_path, WEIGHTED.replace("grad_output.contiguous(), dx", "grad_output, dx"))
    assert "layout-dependent" in {f.rule for f in report.errors} | {s.rule for f in report.errors for s in f.symptoms}

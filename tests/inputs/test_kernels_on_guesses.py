"""What a guess may accuse where kernels run: in a file of its own, because a file with kernels is checked in their precision."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest


@pytest.mark.deep
def test_a_kernel_for_vectors_is_not_accused_on_a_guessed_matrix(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    path = tmp_path / "doubled.py"
    path.write_text(
        dedent(
            """
            import torch
            import triton
            import triton.language as tl

            @triton.jit
            def scaled(x_ptr, out_ptr, by, N, BLOCK: tl.constexpr):
                at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < N) * by, mask=at < N)

            def launched(x, by):
                x, N = x.contiguous(), x.shape[0]
                out = torch.empty_like(x)
                scaled[(triton.cdiv(N, 16),)](x, out, by, N, BLOCK=16)
                return out

            class Op(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.shape = x.shape
                    return launched(x, 2.0).reshape(-1)[: x.shape[0]].sum()

                @staticmethod
                def backward(ctx, grad):
                    return launched(grad.expand(ctx.shape), 2.0)
            """
        )
    )
    call = [sys.executable, "-m", "gradsmith", "check", f"{path}::Op", "--format", "json"]
    report = json.loads(subprocess.run(call, capture_output=True, text=True).stdout)
    assert not [f for f in report["findings"] if f["severity"] == "error"]
    assert report["subjects"][0]["verdict"] in ("unverified", "verified")

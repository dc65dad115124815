"""Code outside torch is judged in the precision it really computes in: right ones are not refuted for rounding."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from gradsmith.findings import Report
from gradsmith.lab.measure.noise import STEPS, relative_noise

SINE = """
import numpy as np
import torch


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.detach().numpy().astype(np.float32)).astype(np.float64) * 3.7).to(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.from_numpy(np.cos(x.detach().numpy().astype(np.float32))).to(x) * 3.7


gradsmith_inputs = {"Sine": lambda: (torch.randn(5, 7, dtype=DTYPE, requires_grad=True),)}
"""


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float64"])
def test_numpy_that_computes_in_float32_is_verified(dtype: str, check_source: Callable[..., Report]) -> None:
    report = check_source(SINE.replace("DTYPE", dtype), level="quick")
    assert "refuted" not in {s.verdict for s in report.subjects}, [f.message for f in report.findings]


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float64"])
def test_one_per_cent_off_is_wrong_in_float32_too(dtype: str, check_source: Callable[..., Report]) -> None:
    source = SINE.replace("DTYPE", dtype).replace(".to(x) * 3.7\n\n\ngrad", ".to(x) * 3.737\n\n\ngrad")
    report = check_source(source, level="quick")
    assert "wrong-gradient" in {f.rule for f in report.errors}


LIBRARY = """
import ctypes
import torch

libm = ctypes.CDLL("libm.so.6")
libm.sinf.restype = libm.cosf.restype = ctypes.c_float
libm.sinf.argtypes = libm.cosf.argtypes = [ctypes.c_float]


def sine(x):
    return torch.tensor([libm.sinf(v) for v in x.detach().reshape(-1).tolist()]).reshape(x.shape).to(x)


def cosine(x):
    return torch.tensor([libm.cosf(v) for v in x.detach().reshape(-1).tolist()]).reshape(x.shape).to(x)
"""
THROUGH_LIBRARY = """
import torch
from single_precision import cosine, sine


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sine(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * cosine(x)


gradsmith_inputs = {"Sine": lambda: (torch.randn(3, 5, dtype=DTYPE, requires_grad=True),)}
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module that computes in float32 by ctypes; nothing in the subject's own file says so."""
    (tmp_path / "single_precision.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("single_precision", None)


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float64"])
@pytest.mark.parametrize(("backward", "right"), [("cosine(x)", True), ("cosine(x) * 1.02", False)])
def test_a_library_behind_an_import_is_judged_in_its_own_precision(
    dtype: str, backward: str, right: bool, library: None, check_source: Callable[..., Report]
) -> None:
    source = THROUGH_LIBRARY.replace("DTYPE", dtype).replace("* cosine(x)", f"* {backward}")
    report = check_source(source, level="quick")
    if right:
        assert "refuted" not in {s.verdict for s in report.subjects}, [f.message for f in report.findings]
    else:
        assert "wrong-gradient" in {f.rule for f in report.errors}


@pytest.mark.parametrize(("dtype", "low", "high"), [(torch.float32, 1e-9, 1e-6), (torch.float64, 1e-19, 1e-15)])
def test_noise_is_that_of_the_type_forward_computes_in(dtype: torch.dtype, low: float, high: float) -> None:
    x = torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    eps = torch.finfo(dtype).eps
    outputs = [[torch.tanh((x * (1 + 8 * eps * k)).to(dtype)).double()] for k in STEPS]
    assert (
        low < relative_noise(lambda step: outputs[STEPS.index(step)], {0: torch.ones(50, dtype=torch.float64)}) < high
    )

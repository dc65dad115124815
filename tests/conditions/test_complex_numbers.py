"""Complex inputs: right where the conjugate is there, named where it is not, and no alarm for code meant for reals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import gradsmith as gs
from gradsmith.findings import Finding, Report

PRODUCT = """
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y{forward}

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y{conj}, grad_output * x{conj}


def example():
    x = torch.randn(4, 3, dtype=torch.{dtype}, requires_grad=True)
    return x, torch.randn(4, 3, dtype=torch.{dtype}, requires_grad=True)


gradsmith_inputs = {{"Product": example}}
"""


def source(*, conj: bool, dtype: str = "float64", forward: str = "") -> str:
    return PRODUCT.format(conj=".conj()" if conj else "", dtype=dtype, forward=forward)


def column(report: Report) -> str:
    return report.subjects[0].conditions["complex"]


def serious(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.severity != "info"]


def test_a_gradient_with_its_conjugate_works(check_source: Callable[..., Report]) -> None:
    report = check_source(source(conj=True))
    assert column(report) == "works"
    assert report.ok
    assert not serious(report)


def test_a_missing_conjugate_is_a_cell_of_the_matrix_where_nobody_spoke_of_complex(
    check_source: Callable[..., Report],
) -> None:
    report = check_source(source(conj=False))
    assert column(report) == "not supported: the gradient of 'x' lacks a conj()"
    assert report.ok
    assert not serious(report)


def test_a_missing_conjugate_is_a_warning_where_the_source_speaks_of_complex(
    check_source: Callable[..., Report],
) -> None:
    report = check_source(source(conj=False, forward=" if x.is_complex() else x * y"))
    (finding,) = serious(report)
    assert (finding.rule, finding.severity) == ("dtype-dependent", "warning")
    assert "lacks a conj()" in finding.message


def test_a_forward_that_rejects_complex_numbers_is_listed(check_source: Callable[..., Report]) -> None:
    report = check_source(source(conj=False, forward=".clamp(-1e9, 1e9)"))
    assert column(report).startswith("not supported: forward raises")
    assert report.ok


@pytest.mark.parametrize("conj", [True, False])
def test_given_complex_inputs_are_judged(check_source: Callable[..., Report], conj: bool) -> None:
    report = check_source(source(conj=conj, dtype="complex128"))
    assert report.ok == conj
    causes = {f.cause for f in report.findings if f.rule == "wrong-gradient"}
    assert causes == (set() if conj else {"conjugated"})


@pytest.mark.parametrize("operation", [torch.abs, torch.angle, torch.view_as_real, torch.linalg.inv])
def test_torchs_own_complex_gradients_are_right(operation: Callable[..., torch.Tensor]) -> None:
    x = torch.randn(3, 3, dtype=torch.complex128, requires_grad=True)
    assert gs.check(operation, x).ok


def takes_expanded(operation: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """What is expanded is refused by torch.fft.fft with MKL in torch 2.6 to 2.8, and taken in 2.13."""
    try:
        operation(torch.ones((), dtype=torch.complex128).expand(3))
    except RuntimeError:
        return False
    return True


def test_a_transform_is_right_and_what_it_refuses_is_named() -> None:
    report = gs.check(torch.fft.fft, torch.randn(3, 3, dtype=torch.complex128, requires_grad=True))
    expected = [] if takes_expanded(torch.fft.fft) else ["layout-dependent"]
    assert [f.rule for f in serious(report)] == expected


def test_a_class_that_is_called_complex_speaks_of_it(check_source: Callable[..., Report]) -> None:
    text = source(conj=False).replace("Product", "ComplexProduct")
    assert [(f.rule, f.severity) for f in serious(check_source(text))] == [("dtype-dependent", "warning")]
    assert not serious(check_source(source(conj=True).replace("Product", "ComplexProduct")))


PARTS = """
import torch


class ComplexSize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_re, x_im):
        ctx.save_for_backward(x_re, x_im)
        return x_re * x_re + x_im * x_im

    @staticmethod
    def backward(ctx, grad_output):
        x_re, x_im = ctx.saved_tensors
        return grad_output * 2 * x_re, grad_output * 2 * x_im


def example():
    x_re = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x_re, torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"ComplexSize": example}
"""


def test_real_and_imaginary_parts_as_two_inputs_are_real(check_source: Callable[..., Report]) -> None:
    assert not serious(check_source(PARTS))

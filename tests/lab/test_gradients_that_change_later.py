"""A gradient is what backward returned, not what the tensor holds after the next backward."""

from __future__ import annotations

import pytest
import torch
from functions_with_buffers import (
    Accumulates,
    PassesOn,
    ReusesOneOfItsClass,
    ReusesOneOfItsGraph,
    WritesItsResultIntoOneOfItsClass,
)

import gradsmith as gs


def leaf() -> torch.Tensor:
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


def test_the_harm_is_real_two_uses_in_one_graph() -> None:
    x, y = leaf(), leaf()
    gradients = torch.autograd.grad((ReusesOneOfItsClass.apply(x) + ReusesOneOfItsClass.apply(y)).sum(), (x, y))
    assert torch.equal(gradients[0], gradients[1])
    assert not torch.allclose(gradients[0], x.cos()) or not torch.allclose(gradients[1], y.cos())


def test_an_accumulating_grad_is_not_repeatable() -> None:
    report = gs.check(Accumulates, leaf())
    assert {f.rule for f in report.errors} == {"not-repeatable"}
    assert "two different gradients of 'x'" in report.errors[0].message


@pytest.mark.parametrize("function", [ReusesOneOfItsClass, ReusesOneOfItsGraph])
def test_a_reused_buffer_is_named_and_nothing_else_is_claimed(function: type[torch.autograd.Function]) -> None:
    report = gs.check(function, leaf())
    assert {f.rule for f in report.errors} == {"not-repeatable"}
    (finding,) = report.errors
    assert "a gradient handed out changes later" in finding.message
    assert "'x'" in finding.message
    assert not {s.rule for s in finding.symptoms} & {"ignored-grad-output", "wrong-gradient"}


def test_grad_output_handed_on_is_no_buffer() -> None:
    assert "not-repeatable" not in {f.rule for f in gs.check(PassesOn, leaf(), leaf()).findings}


@pytest.mark.parametrize("function", [ReusesOneOfItsClass, ReusesOneOfItsGraph])
def test_the_second_derivative_is_not_measured_on_a_buffer_that_changes(
    function: type[torch.autograd.Function],
) -> None:
    report = gs.check(function, leaf())
    assert "wrong-second-order" not in {f.rule for f in report.findings if f.severity != "info"}


def test_who_keeps_the_last_output_does_not_leak() -> None:
    report = gs.check(WritesItsResultIntoOneOfItsClass, leaf())
    assert not {f.rule for f in report.findings} & {"output-view-saved", "reference-cycle"}

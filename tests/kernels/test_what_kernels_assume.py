"""Kernels as people write them: right under an assumption that is said, wrong at a line that is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gradsmith as gs
from gradsmith.findings import Report
from gradsmith.rules.kernels import SQUARE

pytest.importorskip("triton")
FRESH = "grad = torch.empty_like(x)"
LAUNCH = "square_backward[(triton.cdiv(x.numel(), 16),)](x, grad_output.contiguous(), grad, x.numel(), BLOCK=16)"
OVER_GRADIENT = SQUARE.replace(FRESH, "grad_output = grad = grad_output.contiguous()")
OVER_INPUT = SQUARE.replace(FRESH, "grad = x")
OVER_INPUT_EARLY = (
    SQUARE.replace("square[(triton", "kept = x.clone()\n        square[(triton")
    .replace("BLOCK=16)\n        return y", "BLOCK=16)\n        square[(3,)](kept, x, 37, BLOCK=16)\n        return y")
    .replace("ctx.save_for_backward(x)", "ctx.save_for_backward(x.clone())")
)
ACCEPTS = "class Square(torch.autograd.Function):  # gradsmith: assumes[nothing else reads grad_output]"
SCALED = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + tl.program_id(0) * n + i, x * w, mask=i < n)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x = x.contiguous()
        ctx.save_for_backward(x, w)
        y = torch.empty_like(x)
        scale[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=8)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        g = grad_output.contiguous()
        dx = torch.empty_like(x)
        scale[(x.shape[0],)](g, w, dx, x.shape[1], BLOCK=8)
        dw = (g * x).sum(0)
        return dx, dw


gradsmith_inputs = {"Scale": lambda: (torch.randn(5, 7, requires_grad=True), torch.randn(7, requires_grad=True))}
"""
LOCKED = """
import torch
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, y_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr, tl.load(y_ptr) + tl.sum(x, 0))
    tl.atomic_xchg(lock_ptr, 0)


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        y, lock = x.new_zeros(()), torch.zeros(1, dtype=torch.int32)
        total[(triton.cdiv(x.numel(), 16),)](x.contiguous(), y, lock, x.numel(), BLOCK=16)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.shape)


gradsmith_inputs = {"Total": lambda: (torch.randn(37, requires_grad=True),)}
"""
UNLOCKED = LOCKED.replace("    while tl.atomic_cas(lock_ptr, 0, 1) == 1:\n        pass\n", "")
# One element of 37 is off: it has to be found among right ones, in few runs.
ONE_OFF = SQUARE.replace("tl.store(d_ptr + i, 2 * x * g,", "tl.store(d_ptr + i, tl.where(i == 11, 3, 2) * x * g,")
SOURCES = {
    "over_gradient": OVER_GRADIENT,
    "accepted": OVER_GRADIENT.replace("class Square(torch.autograd.Function):", ACCEPTS),
    "over_gradient_and_wrong": OVER_GRADIENT.replace("2 * x * g", "3 * x * g"),
    "over_input": OVER_INPUT,
    "over_input_early": OVER_INPUT_EARLY,
    "scaled": SCALED,
    "mean": SCALED.replace("(g * x).sum(0)", "(g * x).mean(0)"),
    "locked": LOCKED,
    "unlocked": UNLOCKED,
    "one_off": ONE_OFF,
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    folder = tmp_path_factory.mktemp("assumed")
    for name, source in SOURCES.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    whole = gs.check_paths(folder, level="quick")
    return {
        name: Report(
            [f for f in whole.findings if f.path == str(folder / f"{name}.py")],
            [s for s in whole.subjects if s.path == str(folder / f"{name}.py")],
        )
        for name in SOURCES
    }


def _verdict(report: Report) -> tuple[str, tuple[str, ...]]:
    return report.subjects[0].verdict, report.subjects[0].assumptions


def test_a_kernel_that_stores_into_grad_output_is_not_verified_until_somebody_accepts_it(
    reports: dict[str, Report],
) -> None:
    sentence = "nothing else reads grad_output"
    assert _verdict(reports["over_gradient"]) == ("unverified", (sentence,))
    assert sentence in reports["over_gradient"].subjects[0].reason
    assert _verdict(reports["accepted"]) == ("verified", (sentence,))


def test_an_assumption_is_no_excuse_for_a_wrong_number(reports: dict[str, Report]) -> None:
    assert "wrong-gradient" in {f.rule for f in reports["over_gradient_and_wrong"].errors}


def test_an_input_that_backward_overwrites_is_an_assumption(reports: dict[str, Report]) -> None:
    assert _verdict(reports["over_input"]) == ("verified", ("nothing reads 'x' after backward",))
    assert _verdict(reports["over_input_early"])[0] == "unverified"


def test_a_parameter_that_is_read_as_contiguous_is_an_assumption(reports: dict[str, Report]) -> None:
    assert _verdict(reports["scaled"]) == ("verified", ("'w' is contiguous",))


def test_what_torch_computes_wrong_is_not_blamed_on_a_kernel(reports: dict[str, Report]) -> None:
    (finding,) = [f for f in reports["mean"].errors if f.rule == "wrong-gradient"]
    assert "dw = (g * x).mean(0)" in SOURCES["mean"].splitlines()[(finding.line or 1) - 1]
    assert "stores it" not in finding.message


def test_a_lock_orders_programs_only_where_it_is_taken(reports: dict[str, Report]) -> None:
    assert _verdict(reports["locked"])[0] == "verified"
    assert "race" in {f.rule for f in reports["unlocked"].errors}


def test_one_wrong_element_of_many_is_found(reports: dict[str, Report]) -> None:
    (finding,) = [f for f in reports["one_off"].errors if f.rule == "wrong-gradient"]
    assert "x[11]" in finding.message


CHECKPOINT = """
import torch


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, parameters):
        ctx.save_for_backward(x)
        ctx.parameters = parameters
        with torch.no_grad():
            return torch.tanh(x @ parameters[0])

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = torch.tanh(x @ ctx.parameters[0])
        torch.autograd.backward(y, FACTOR * grad_output)
        return x.grad, None


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, [torch.randn(3, 3, dtype=torch.float64, requires_grad=True)]


gradsmith_inputs = {"Layer": example}
"""


@pytest.mark.parametrize(("factor", "wrong"), [("1", False), ("2", True)])
def test_a_backward_inside_backward_gives_parameters_their_gradient(
    factor: str, wrong: bool, check_source: Callable[..., Report]
) -> None:
    report = check_source(CHECKPOINT.replace("FACTOR", factor), level="quick", lint=False)
    assert "none-for-tensor" not in {f.rule for f in report.findings}
    assert ("wrong-gradient" in {f.rule for f in report.errors}) == wrong

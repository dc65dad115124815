"""What is advised is right at two examples, has a name, and stands at the line of the gradient."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

import gradsmith as gs
from gradsmith import Report
from gradsmith.diagnosis.mutate import candidates

HEAD = "import torch\n\n\n"
WITH_OPTION = """class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mode="mean"):
        ctx.save_for_backward(x)
        ctx.mode = mode
        return x.square().mean() if mode == "mean" else x.square().sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        {body}


gradsmith_inputs = {{"Total": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}}
"""
APART = """if ctx.mode == "mean":
            return grad_output * 2 * x / x.numel(), None
        return grad_output * 1 * x, None"""
TOGETHER = "return grad_output * 2 * x / x.numel(), None"


def test_a_change_that_keeps_the_users_own_example_right_is_advised(check_source: Callable[..., Report]) -> None:
    (error,) = check_source(HEAD + WITH_OPTION.format(body=APART)).errors
    assert error.rule == "option-dependent"
    assert "Write `2` instead of `1`" in (error.advice or "")
    assert "grad_output * 1 * x" in error.snippet


def test_a_change_that_would_break_the_users_own_example_is_not_advised(check_source: Callable[..., Report]) -> None:
    (error,) = check_source(HEAD + WITH_OPTION.format(body=TOGETHER)).errors
    assert error.rule == "option-dependent"
    assert "Write `" not in (error.advice or "")
    assert error.advice is not None and error.advice.startswith("With `mode=")


SCALED = """class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp().sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = {factor} * grad_output * x.exp()
        return grad


gradsmith_inputs = {{"Scaled": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}}
"""


@pytest.mark.parametrize(
    ("factor", "name"),
    [
        ("x.numel()", "x.numel()"),
        ("1 / x.shape[0]", "1 / x.shape[0]"),
        ("x.shape[1] ** 0.5", "the square root of x.shape[1]"),
    ],
)
def test_a_size_that_got_into_a_gradient_is_named(factor: str, name: str, check_source: Callable[..., Report]) -> None:
    (error,) = check_source(HEAD + SCALED.format(factor=factor)).errors
    assert error.cause == "factor"
    assert f"({name})" in error.message


def test_a_factor_that_is_no_size_is_not_multiplied_away(check_source: Callable[..., Report]) -> None:
    (error,) = check_source(HEAD + SCALED.format(factor="torch.pi")).errors
    assert error.cause != "factor"
    assert "Multiply" not in (error.advice or "")


def test_a_wrong_number_stands_where_the_gradient_is_computed(check_source: Callable[..., Report]) -> None:
    (error,) = check_source(HEAD + SCALED.format(factor="x.numel()")).errors
    assert "grad = x.numel() * grad_output" in error.snippet


def test_a_gradient_in_the_slot_of_another_input_is_named(check_source: Callable[..., Report]) -> None:
    text = HEAD + (
        "class Scale(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, mask, x):\n"
        "        ctx.save_for_backward(mask)\n"
        "        return mask * x\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, grad_output):\n"
        "        (mask,) = ctx.saved_tensors\n"
        "        return grad_output * mask, None\n\n\n"
        "def example():\n"
        "    mask = torch.rand(4, 3, dtype=torch.float64)\n"
        "    return mask, torch.randn(4, 3, dtype=torch.float64, requires_grad=True)\n\n\n"
        'gradsmith_inputs = {"Scale": example}\n'
    )
    errors = [e for e in check_source(text).errors if e.rule == "none-for-tensor"]
    assert [(e.argument, e.cause) for e in errors] == [("x", "swapped")]
    assert "a gradient for 'mask', which needs none" in errors[0].message


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "sign", "trunc"])
def test_a_step_has_no_slope_however_many_elements_jump(name: str) -> None:
    import torch

    x = 3 * torch.randn(20, 20, dtype=torch.float64, requires_grad=True)
    assert gs.check(getattr(torch, name), x, level="quick").subjects[0].verdict == "verified"


def test_an_output_that_torch_has_not_conjugated_yet_is_judged() -> None:
    import torch

    x = torch.randn(8, dtype=torch.float64, requires_grad=True)
    report = gs.check(lambda x: torch.fft.ifft(x.to(torch.complex128)).conj(), x, level="quick")
    assert report.subjects[0].verdict == "verified"


def test_no_repair_takes_a_tensor_from_itself() -> None:
    """`x - x` is 0, and `x / x` is 1, in disguise: neither is a missing term."""
    source = "def backward(ctx, grad_output):\n    x, y = ctx.saved_tensors\n    return grad_output * (x - y) + x / y"
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    offered = [ast.dump(node) for _ in candidates(tree) for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
    assert len(offered) > 200
    same = (
        ast.BinOp(ast.Name(n, ast.Load()), op, ast.Name(n, ast.Load())) for n in "xy" for op in (ast.Sub(), ast.Div())
    )
    assert not set(map(ast.dump, same)) & set(offered)

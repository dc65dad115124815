"""Repairs where there is no number to start from: backward raises, torch refuses what it returns, or an option decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradsmith import Report
from gradsmith.source.edits import apply

HEAD = "import torch\n\n\n"
INPUTS = """

def n(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Op": %s}
"""
MATMUL = """class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_a = grad_output @ b.mT
        grad_b = a.mT @ grad_output
        return grad_a, grad_b
"""
POWER = """class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        ctx.scale = 1 / x.numel()
        return (x**power).sum() * ctx.scale

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.scale * ctx.power * x ** (ctx.power - 1), None
"""
BIAS = """class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.mT @ x
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_x, grad_weight, grad_bias
"""
TWO = """class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s, c = torch.sin(x), torch.cos(x)
        ctx.save_for_backward(s, c)
        ctx.set_materialize_grads(False)
        return s, c

    @staticmethod
    def backward(ctx, grad_s, grad_c):
        s, c = ctx.saved_tensors
        if grad_s is None and grad_c is None:
            return None
        if grad_s is None:
            return -grad_c * s
        if grad_c is None:
            return grad_s
        return grad_s * c - grad_c
"""
TWO_MATRICES = "lambda: (n(4, 3), n(3, 5))"


@pytest.mark.parametrize(
    ("right", "old", "new", "inputs"),
    [
        (MATMUL, "a, b = ctx", "b, a = ctx", TWO_MATRICES),
        (MATMUL, "return grad_a, grad_b", "return grad_a", TWO_MATRICES),
        (MATMUL, "return grad_a, grad_b", "return grad_a, grad_b, grad_b", TWO_MATRICES),
        (MATMUL, MATMUL[MATMUL.index("\n    @staticmethod\n    def backward") :], "", TWO_MATRICES),
        (POWER, "ctx.power - 1", "1", "[lambda: (n(4, 3), 3), lambda: (n(4, 3), 2)]"),
        (POWER, "grad_output * ctx.scale", "grad_output", "lambda: (n(4, 3), 3)"),
        (BIAS, "grad_output.sum(0)", "grad_output[0]", "[lambda: (n(4, 3), n(5, 3), n(5)), lambda: (n(4, 3), n(5, 3), None)]"),
        (TWO, "", "", "lambda: (n(4, 3),)"),
    ],
    ids=["exchanged", "too few", "too many", "no backward", "option", "scale", "optional bias", "two outputs"],
)  # fmt: skip
def test_it_is_mended_and_then_right(
    check_source: Callable[..., Report], right: str, old: str, new: str, inputs: str
) -> None:
    assert right.count(old) == 1 or right is TWO
    text = HEAD + (right.replace(old, new) if old else right) + INPUTS % inputs
    report = check_source(text)
    assert not report.ok
    (edits,) = {f.edits for f in report.findings if f.edits}
    after = check_source(apply(text, edits))
    assert after.ok, after

"""Tests that prove nothing: what is reported about calls of gradcheck, and what is left alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gradsmith.linting import lint, lint_source

HEAD = "import torch\nfrom torch.autograd import gradcheck, gradgradcheck\nfrom mine import Fn\n\n\ndef test_fn():\n"
X32 = "x = torch.randn(3, requires_grad=True)\n"
X64 = "x = torch.randn(3, dtype=torch.double, requires_grad=True)\n"


def rules_of(body: str) -> list[str]:
    return [f.rule for f in lint_source(HEAD + textwrap.indent(body, "    "), select=["tests"], debug=True).findings]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (X32 + "gradcheck(Fn.apply, x)", ["gradcheck-float32"]),
        (X32 + "torch.autograd.gradcheck(Fn.apply, [x])", ["gradcheck-float32"]),
        ("x = torch.randn(3).float().requires_grad_()\ngradgradcheck(Fn.apply, (x,))", ["gradcheck-float32"]),
        (X64 + "gradcheck(Fn.apply, x)", []),
        ("x = torch.randn(3).double().requires_grad_()\ngradcheck(Fn.apply, x)", []),
        ("x = torch.randn(3, **options)\ngradcheck(Fn.apply, x)", []),
        (X32 + "gradcheck(Fn.apply, (x.double(),))", []),
        (X64 + "ok = gradcheck(Fn.apply, x, raise_exception=False)", ["gradcheck-unused"]),
        (X64 + "ok = gradcheck(Fn.apply, x, raise_exception=False)\nassert ok", []),
        (X64 + "return gradcheck(Fn.apply, x, raise_exception=False)", []),
        (X64 + "ok = gradcheck(Fn.apply, x, raise_exception=False)\nif not ok:\n    raise ValueError", []),
        (X64 + "if gradcheck(Fn.apply, x, raise_exception=False):\n    print('right')", ["gradcheck-silenced"]),
        (X64 + "gradcheck(Fn.apply, x, rtol=0.5)", ["gradcheck-loosened"]),
        (X64 + "gradcheck(Fn.apply, x, atol=1e-4, rtol=1e-2)", []),
        (X64 + "try:\n    gradcheck(Fn.apply, x)\nexcept Exception:\n    pass", ["gradcheck-swallowed"]),
        (X64 + "try:\n    gradcheck(Fn.apply, x)\nexcept Exception:\n    raise", []),
        (X64 + "try:\n    gradcheck(Fn.apply, x)\nexcept Exception:\n    pytest.fail('wrong')", []),
        (X64 + "try:\n    gradcheck(Fn.apply, x)\nexcept ImportError:\n    pass", []),
        ("x = torch.randn(3, dtype=torch.double)\ngradcheck(Fn.apply, x)", ["gradcheck-nothing"]),
        ("x = torch.randn(3, dtype=torch.double)\nx.requires_grad = True\ngradcheck(Fn.apply, x)", []),
        (
            "x = torch.randn(0, 3, dtype=torch.double, requires_grad=True)\ngradcheck(Fn.apply, x)",
            ["gradcheck-nothing"],
        ),
        ("gradcheck(Fn.apply, make_inputs())", []),
        (X32 + "self.gradcheck(Fn.apply, x)", []),
    ],
)
def test_gradcheck(body: str, found: list[str]) -> None:
    assert rules_of(body) == found


def test_a_default_dtype_of_float64_counts() -> None:
    text = "torch.set_default_dtype(torch.float64)\n" + X32 + "gradcheck(Fn.apply, x)"
    assert rules_of(text) == []


def test_calls_of_the_module_itself_are_seen() -> None:
    text = "import torch\nx = torch.randn(3, requires_grad=True)\nprint(torch.autograd.gradcheck(torch.sin, x))\n"
    assert [f.rule for f in lint_source(text, select=["tests"], debug=True).findings] == ["gradcheck-float32"]


FUNCTIONS = """
import torch


class Tested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


class ThroughAName(Tested):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Forgotten(Tested):
    @staticmethod
    def forward(ctx, x):
        return x * 2


def doubled(x):
    return ThroughAName.apply(x)
"""


def test_a_function_without_any_test(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    assert [f.function for f in lint(tmp_path, select=["untested-function"], debug=True).findings] == []
    (tmp_path / "test_mine.py").write_text(
        "from mine import Tested, doubled\n\n\ndef test_both(x):\n    Tested.apply(x)\n    doubled(x)\n"
    )
    found = lint(tmp_path, select=["untested-function"], debug=True).findings
    assert [(f.function, f.severity) for f in found] == [("Forgotten", "info")]

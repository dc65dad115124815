"""Source lenses of the family contract: the defects in the clothes users give them, and the idioms that are right."""

from __future__ import annotations

import textwrap

import pytest

from gradsmith.findings import Finding
from gradsmith.linting import lint_source
from gradsmith.source.edits import apply


def found(body: str, rule: str) -> list[Finding]:
    """What a rule says about the members of a Function named Fn."""
    header = "import torch\nimport torch.nn.functional as F\n\n\nclass Fn(torch.autograd.Function):\n"
    return in_file(header + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n", rule)


def in_file(text: str, rule: str) -> list[Finding]:
    report = lint_source(text, select=[rule], debug=True)
    assert report.skipped == []
    return report.findings


def fn(forward: str, backward: str, inputs: str = "x", grads: str = "g") -> str:
    def lines(text: str) -> str:
        return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")

    return (
        f"@staticmethod\ndef forward(ctx, {inputs}):\n{lines(forward)}\n\n"
        f"@staticmethod\ndef backward(ctx, {grads}):\n{lines(backward)}\n"
    )


DEFECTS = {
    "the builtin of that name": ("save-nontensor", fn("ctx.save_for_backward(input)\nreturn x * x", "return g")),
    "a bare return": ("no-output", fn("y = x * 2\nctx.save_for_backward(y)\nreturn", "return g * 2")),
    "returned by a function inside only": ("no-output", fn("def f(t):\n    return t * 2\ny = f(x)", "return g * 2")),
    "None that stayed": ("extra-none", fn("return x * 2", "return g * 2, None")),
    "two of them": ("extra-none", fn("return x * y", "return g * 2, g, None, None", "x, y")),
    "one output too few": ("backward-arity", fn("return x, x * 2", "return g")),
    "one output too many": ("backward-arity", fn("return x * 2", "return g + h", grads="g, h")),
    "read at once": ("saved-in-forward", fn("ctx.save_for_backward(x)\nreturn ctx.saved_tensors[0]", "return g")),
    "forgotten ctx": (
        "ctx-signature",
        "@staticmethod\ndef forward(x):\n    return x * 2\n\n@staticmethod\ndef backward(ctx, g):\n    return g * 2",
    ),
    "gradient of a flag": ("grad-for-nontensor", fn("return x * p", "return g, g.sum()", "x, p: bool")),
    "gradient of a module": ("grad-for-nontensor", fn("return m(x)", "return g, g * 2", "x, m: torch.nn.Module")),
    "attribute of None": (
        "none-grad-arith",
        fn("ctx.set_materialize_grads(False)\nreturn x, x * 2", "return g.sum() + 2 * h", grads="g, h"),
    ),
    "torch function of None": (
        "none-grad-arith",
        fn("ctx.set_materialize_grads(False)\nreturn x, x * 2", "return torch.add(g, h)", grads="g, h"),
    ),
    "no static backward": (
        "not-static",
        "@staticmethod\ndef forward(ctx, x):\n    return x\n\ndef backward(ctx, g):\n    return g",
    ),
    "vmap without setup_context": (
        "vmap-conflict",
        "generate_vmap_rule = True\n\n" + fn("return x", "return g"),
    ),
    "a kept function without a graph": (
        "nested-backward",
        fn(
            "ctx.run = run\nctx.save_for_backward(x)\nreturn run(x)",
            "(x,) = ctx.saved_tensors\nx = x.detach().requires_grad_()\ny = ctx.run(x)\nreturn None, torch.autograd.grad(y, x, g)[0]",
            "run, x",
        ),
    ),
    "setup_context unpacks one of two": (
        "unpack-count",
        """
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g, None
        """,
    ),
    "autograd.grad without a graph": (
        "nested-backward",
        fn(
            "ctx.save_for_backward(x)\nreturn x.exp()",
            "(x,) = ctx.saved_tensors\ny = torch.exp(x)\nreturn torch.autograd.grad(y, x, g)[0]",
        ),
    ),
    "jvp that forgets": (
        "jvp-returns-nothing",
        fn("return x * 2", "return g * 2") + "\n@staticmethod\ndef jvp(ctx, t):\n    t = t * 2\n    return",
    ),
    "mark in backward": ("save-in-backward", fn("return x", "ctx.mark_dirty(g)\nreturn g")),
    "storage mark": ("deprecated-api", fn("y = x.view(-1)\nctx.mark_shared_storage((x, y))\nreturn y", "return g")),
    "index out of range": (
        "needs-input-grad-index",
        fn("return x * 2", "return g * 2 if ctx.needs_input_grad[1] else None"),
    ),
    "counted with ctx": (
        "needs-input-grad-index",
        fn(
            "ctx.save_for_backward(x, w)\nreturn x * w",
            """
            x, w = ctx.saved_tensors
            dx = g * w if ctx.needs_input_grad[1] else None
            dw = g * x if ctx.needs_input_grad[2] else None
            return dx, dw, None
            """,
            "x, w, eps",
        ),
    ),
    "through a name": (
        "needs-input-grad-index",
        fn(
            "ctx.save_for_backward(x, w)\nreturn x * w",
            """
            x, w = ctx.saved_tensors
            need_x, need_w = ctx.needs_input_grad
            dx = dw = None
            if need_w:
                dx = g * w
            if need_x:
                dw = g * x
            return dx, dw
            """,
            "x, w",
        ),
    ),
    "no_grad decorator": (
        "redundant-no-grad",
        (
            "@staticmethod\n@torch.no_grad()\ndef forward(ctx, x):\n    return x\n\n"
            "@staticmethod\ndef backward(ctx, g):\n    return g"
        ),
    ),
    "dirty, and a copy returned": (
        "dirty-not-returned",
        fn("x.mul_(2)\nctx.mark_dirty(x)\nreturn x.clone()", "return g * 2"),
    ),
    "dirty something else": ("dirty-not-returned", fn("y = x * 2\nctx.mark_dirty(y)\nreturn x + y", "return g * 2")),
    "intermediate marked": (
        "mark-not-output",
        fn("i = x.argmax()\nctx.mark_non_differentiable(i)\nreturn x.max()", "return g"),
    ),
}

RIGHT = {
    "an input with the name of a builtin": (
        "save-nontensor",
        fn("ctx.save_for_backward(input)\nreturn input", "return g", "input"),
    ),
    "returned on one path": (
        "no-output",
        fn("if n == 1:\n    return x\nelif n == 2:\n    return x * 2", "return g, None", "x, n"),
    ),
    "a forward that others write": ("no-output", fn('"""Override me."""', "return g")),
    "a forward that refuses": ("no-output", fn("raise NotImplementedError", "return g")),
    "no gradient, either": ("no-output", fn("out.copy_(x)", "raise RuntimeError", "x, out")),
    "Nones that fit": ("extra-none", fn("return x * n", "return g * 2, None", "x, n")),
    "defaults count": ("extra-none", fn("return x * n", "return g * 2, None", "x, n=2")),
    "as many as there are": ("extra-none", fn("return args[0]", "return (g, None, None)", "*args")),
    "two outputs, two gradients": ("backward-arity", fn("return x, x * 2", "return g + 2 * h", grads="g, h")),
    "one with a default": ("backward-arity", fn("return x, x * 2", "return g", grads="g, h=None")),
    "all of them": ("backward-arity", fn("return x, x * 2", "return gs[0]", grads="*gs")),
    "either one or two": (
        "backward-arity",
        fn("if flag:\n    return x, x * 2\nreturn x", "return g, None", "x, flag", "g, h=None"),
    ),
    "backward only raises": ("backward-arity", fn("return x, x * 2", "raise NotImplementedError")),
    "something else's lu": (
        "save-nontensor",
        fn("u = solver.of(x).lu(x)\nctx.save_for_backward(u)\nreturn u", "return g * ctx.saved_tensors[0]"),
    ),
    "something else's tuple": ("backward-arity", fn("return kernel(x)", "return g + h", grads="g, h")),
    "ctx by another name": (
        "ctx-signature",
        (
            "@staticmethod\ndef forward(c, x):\n    c.save_for_backward(x)\n    return x * 2\n\n"
            "@staticmethod\ndef backward(c, g):\n    return g"
        ),
    ),
    "ctx unused": ("ctx-signature", fn("return x * 2", "return g * 2")),
    "classmethod": (
        "ctx-signature",
        "@classmethod\ndef forward(cls, ctx, x):\n    return x * 2\n\n@classmethod\ndef backward(cls, ctx, g):\n    return g",
    ),
    "new style": (
        "ctx-signature",
        (
            "@staticmethod\ndef forward(x):\n    return x * 2\n\n@staticmethod\ndef setup_context(ctx, inputs, output):\n    pass\n\n"
            "@staticmethod\ndef backward(ctx, g):\n    return g * 2"
        ),
    ),
    "only if needed": (
        "grad-for-nontensor",
        fn("return x * p", "dp = None\nif ctx.needs_input_grad[1]:\n    dp = g.sum()\nreturn g, dp", "x, p: float"),
    ),
    "a tensor or a number": (
        "grad-for-nontensor",
        fn("return x * p", "return g, g.sum()", "x, p: torch.Tensor | float"),
    ),
    "a default may be replaced": ("grad-for-nontensor", fn("return x * p", "return g, g.sum()", "x, p=1.0")),
    "tested for None": (
        "none-grad-arith",
        fn(
            "ctx.set_materialize_grads(False)\nreturn x, x * 2",
            "out = 0\nif g is not None:\n    out = out + g\nif h is not None:\n    out = out + 2 * h\nreturn out",
            grads="g, h",
        ),
    ),
    "handed on": (
        "none-grad-arith",
        fn("ctx.set_materialize_grads(False)\nreturn x, x * 2", "return combine(g, h)", grads="g, h"),
    ),
    "one output is always there": (
        "none-grad-arith",
        fn("ctx.set_materialize_grads(False)\nreturn x * 2", "return g * 2"),
    ),
    "setup_context takes the first": (
        "unpack-count",
        """
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, *_ = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g, None
        """,
    ),
    "setup_context without the default": (
        "unpack-count",
        """
        @staticmethod
        def forward(x, k=2):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs

        @staticmethod
        def backward(ctx, g):
            return g
        """,
    ),
    "checkpoint recomputes": (
        "nested-backward",
        fn(
            "ctx.save_for_backward(x)\nreturn run(x)",
            """
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = run(x)
            torch.autograd.backward(y, g)
            return x.grad
            """,
        ),
    ),
    "jvp says no": (
        "jvp-returns-nothing",
        fn("return x", "return g") + "\n@staticmethod\ndef jvp(ctx, t):\n    raise NotImplementedError",
    ),
    "one guard for both": (
        "needs-input-grad-index",
        fn(
            "ctx.save_for_backward(x, w)\nreturn x * w",
            """
            x, w = ctx.saved_tensors
            dx = dw = None
            if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
                dx, dw = g * w, g * x
            return dx, dw
            """,
            "x, w",
        ),
    ),
    "any of them": (
        "needs-input-grad-index",
        fn("return x * w", "if any(ctx.needs_input_grad):\n    return g * 2, g\nreturn None, None", "x, w"),
    ),
    "dirty and returned": ("dirty-not-returned", fn("x.mul_(2)\nctx.mark_dirty(x)\nreturn x", "return g * 2")),
    "dirty and returned by another name": (
        "dirty-not-returned",
        fn("y = x.mul_(2)\nctx.mark_dirty(x)\nreturn y", "return g * 2"),
    ),
    "an output marked": (
        "mark-not-output",
        fn("v, i = x.max(0)\nctx.mark_non_differentiable(i)\nreturn v, i", "return g", grads="g, _"),
    ),
    "static under a decorator": (
        "not-static",
        (
            "@staticmethod\n@torch.amp.custom_fwd(device_type='cuda')\ndef forward(ctx, x):\n    return x\n\n"
            "@staticmethod\ndef backward(ctx, g):\n    return g"
        ),
    ),
    "gradients on on purpose": (
        "redundant-no-grad",
        fn("with torch.enable_grad():\n    y = x * 2\nreturn y.detach()", "return g * 2"),
    ),
}


@pytest.mark.parametrize(("rule", "body"), DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defect_is_named(rule: str, body: str) -> None:
    assert [f.rule for f in found(body, rule)] == [rule] * max(1, len(found(body, rule)))


@pytest.mark.parametrize(("rule", "body"), RIGHT.values(), ids=RIGHT.keys())
def test_a_right_idiom_is_left_alone(rule: str, body: str) -> None:
    assert [f.message for f in found(body, rule) if f.severity != "info"] == []


CLASS = """
import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

"""
CALLS = {
    "def f(x):\n    return Fn()(x)": ["error"],
    "def f(x):\n    return Fn(x)": ["error"],
    "def f(x):\n    op = Fn()\n    return op(x)": ["error"],
    "class M(torch.nn.Module):\n    def __init__(self):\n        self.fn = Fn()\n    def forward(self, x):\n        return self.fn(x)": [
        "error"
    ],
    "def f(x):\n    return Fn.forward(None, x)": ["warning"],
    "def f(x):\n    return Fn.apply(x)": [],
    "f = Fn.apply": [],
    "def f(x):\n    op = Fn()\n    return op.apply(x)": [],
    "def f(x):\n    if torch.is_grad_enabled():\n        return Fn.apply(x)\n    return Fn.forward(None, x)": [],
    "class G(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return Fn.forward(None, x)\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g * 2": [],
}


@pytest.mark.parametrize(("text", "severities"), CALLS.items())
def test_calls_without_apply(text: str, severities: list[str]) -> None:
    assert [f.severity for f in in_file(CLASS + text + "\n", "missing-apply")] == severities


def test_a_mended_call_keeps_its_arguments_and_comments() -> None:
    text = CLASS + "def f(x):\n    return Fn()(x + 1)  # why not\n"
    edits = [e for f in in_file(text, "missing-apply") for e in f.edits]
    assert "return Fn.apply(x + 1)  # why not" in apply(text, edits)


@pytest.mark.parametrize(
    ("returned", "mended"),
    [
        ("g * 2, None", "g * 2"),
        ("(g * 2, None)", "(g * 2)"),
        ("(g + 1), None,  None", "(g + 1)"),
        ("(\n    g,\n    None,\n)", "(\n    g,\n)"),
    ],
)
def test_surplus_nones_go(returned: str, mended: str) -> None:
    text = "import torch\n\n\nclass Fn(torch.autograd.Function):\n" + textwrap.indent(
        fn("return x * 2", f"return {returned}"), "    "
    )
    edits = [e for f in in_file(text, "extra-none") for e in f.edits]
    assert textwrap.indent(f"return {mended}", " " * 8) in apply(text, edits)


def test_amp_decorators_are_modernised_with_their_arguments() -> None:
    text = CLASS.replace("import torch\n", "import torch\nfrom torch.cuda.amp import custom_fwd\n").replace(
        "    @staticmethod\n    def forward",
        "    @staticmethod\n    @custom_fwd(cast_inputs=torch.float32)\n    def forward",
    )
    edits = [e for f in in_file(text, "deprecated-api") for e in f.edits]
    assert '@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)' in apply(text, edits)
    fallback = text.replace(
        "from torch.cuda.amp",
        "try:\n    from torch.amp import custom_fwd\nexcept ImportError:\n    from torch.cuda.amp",
    )
    assert in_file(fallback, "deprecated-api") == []


MODULE = """import torch
from torch import nn


class Clipped(nn.Module):
    def forward(self, x):
        return x

    def backward(self, {given}):
        {body}
"""


@pytest.mark.parametrize(
    ("given", "body", "after", "count"),
    [
        ("grad_output", "return grad_output.clamp(-1, 1)", "", 1),
        ("dy, scale=1", "return dy * scale", "", 1),
        ("grad_output", "return -grad_output", "loss.backward(retain_graph=True)", 1),
        ("loss", "return loss.backward()", "", 0),
        ("grad_output", "self.seen = grad_output", "", 0),
        ("dout", "return dout", "dx = layer.backward(dout)", 0),
    ],
)
def test_the_backward_of_a_module(given: str, body: str, after: str, count: int) -> None:
    assert len(in_file(MODULE.format(given=given, body=body) + "\n\n" + after + "\n", "module-backward")) == count

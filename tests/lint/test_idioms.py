"""Correct code that looks suspicious, and must stay silent; and defects in unusual clothes, which must not."""

from __future__ import annotations

import textwrap

import pytest

from gradsmith.linting import lint_source

TEMPLATE = """
import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {inputs}):
{forward}

    @staticmethod
    def backward(ctx, {grads}):
{backward}
"""


def rules_of(forward: str, backward: str, inputs: str = "x", grads: str = "g") -> list[str]:
    def indented(text: str) -> str:
        return textwrap.indent(textwrap.dedent(text).strip(), " " * 8)

    text = TEMPLATE.format(inputs=inputs, grads=grads, forward=indented(forward), backward=indented(backward))
    report = lint_source(text, debug=True, select=PHASE_ONE)
    return [f.rule for f in report.findings]


PHASE_ONE = (
    "inplace-grad", "tensor-on-ctx", "return-count", "wasted-gradient", "intermediate-saved", "save-nontensor",
    "unpack-count", "data-attr",
)  # fmt: skip

SILENT = {
    "output += bias on a local": (
        "out = x @ w\nout += b\nctx.save_for_backward(x, w)\nreturn out",
        "return None, None, None",
        "x, w, b",
    ),
    "the tuple of saved tensors as a tuple": (
        "ctx.save_for_backward(x)\nreturn 2 * x",
        (
            "saved = ctx.saved_tensors\nmore = saved + (g,) + saved * 2\nx = ctx.saved_tensors\nx = x[0]\n"
            "return more[1] * 2 * len(saved) + x.new_zeros(x.shape) * saved.index(x)"
        ),
        "x",
    ),
    "clone, then a masked write": ("return x.clamp(0)", "grad = g.clone()\ngrad[grad > 1] = 0\nreturn grad", "x"),
    "rebound, then in place": ("return x", "g = g * 2\ng.mul_(3)\ng += 1\nreturn g", "x"),
    "the shape of data": (
        "ctx.n = x.data.size(0)\nreturn x.new_ones(x.data.shape) * x",
        "return g * g.data.dim()",
        "x",
    ),
    "a deliberate gate": ("return x", "return g.neg()", "x"),
    "view_as gate": ("return x.view_as(x)", "return g * 0.1", "x"),
    "scalars on ctx": (
        "ctx.n, ctx.shape, ctx.eps = n, x.shape, eps\nctx.dtype = x.dtype\nctx.flag = x.requires_grad\nreturn x * n",
        "return g * ctx.n, None, None",
        "x, n, eps=1e-5",
    ),
    "a number on ctx, a tensor saved": (
        "ctx.t = isinstance(b, torch.Tensor)\nif ctx.t:\n    ctx.save_for_backward(x, b)\nelse:\n    ctx.b = b\nreturn x * b",
        "x, b = ctx.saved_tensors if ctx.t else (None, ctx.b)\nreturn g * b, g * x if ctx.t else None",
        "x, b",
    ),
    "an argument of unknown type on ctx": ("ctx.reduction = reduction\nreturn x", "return g, None", "x, reduction"),
    "*args": ("return args[0]", "return (g,) + (None,) * 7", "*args"),
    "a computed tuple": (
        "return x",
        "grads = [g]\nfor _ in range(3):\n    grads.append(None)\nreturn tuple(grads)",
        "x, a, b, c",
    ),
    "raise-only backward": ("return x.round(), y", "raise NotImplementedError('not differentiable')", "x, y"),
    "mark_non_differentiable": (
        "out = x.argmax()\nctx.mark_non_differentiable(out)\nreturn out",
        "return None",
        "x, y",
    ),
    "saved None": ("ctx.save_for_backward(x, None)\nreturn x", "x, none = ctx.saved_tensors\nreturn g * x", "x"),
    "an optional tensor saved": (
        "ctx.save_for_backward(x, bias)\nreturn x",
        "x, bias = ctx.saved_tensors\nreturn g, None",
        "x, bias=None",
    ),
    "saves differ by path": (
        "if flag:\n    ctx.save_for_backward(x)\nelse:\n    ctx.save_for_backward(x, x)\nreturn x",
        "if ctx.flag:\n    (x,) = ctx.saved_tensors\nelse:\n    x, y = ctx.saved_tensors\nreturn g, None",
        "x, flag",
    ),
    "star unpacking": (
        "ctx.save_for_backward(x, *rest)\nreturn x",
        "a, b, c, d = ctx.saved_tensors\nreturn g",
        "x, *rest",
    ),
    "ctx handed on": (
        "save_all(ctx, x)\nctx.save_for_backward(x)\nreturn x",
        "a, b = ctx.saved_tensors\nreturn g",
        "x",
    ),
    "a saved mask": (
        "mask = x > 0\nctx.save_for_backward(mask)\nreturn x * mask",
        "(mask,) = ctx.saved_tensors\nreturn g * mask",
        "x",
    ),
    "saved noise": (
        "noise = torch.rand_like(x)\nctx.save_for_backward(noise)\nreturn x * noise",
        "(n,) = ctx.saved_tensors\nreturn g * n",
        "x",
    ),
    "a saved output": (
        "y = x.tanh()\nctx.save_for_backward(y)\nreturn y",
        "(y,) = ctx.saved_tensors\nreturn g * (1 - y * y)",
        "x",
    ),
    "needs_input_grad asked": (
        "ctx.save_for_backward(x, w)\nreturn x @ w",
        """
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = g @ w.t()
        if ctx.needs_input_grad[1]:
            gw = x.t() @ g
        return gx, gw
        """,
        "x, w",
    ),
    "needs_input_grad under a name": (
        "ctx.save_for_backward(x, w)\nreturn x @ w",
        """
        x, w = ctx.saved_tensors
        need_x, need_w = ctx.needs_input_grad
        gx = g @ w.t() if need_x else None
        return gx, x.t() @ g if need_w else None
        """,
        "x, w",
    ),
    "cheap gradients without a test": (
        "ctx.save_for_backward(x, y)\nreturn x * y",
        "x, y = ctx.saved_tensors\nreturn g * y, g * x",
        "x, y",
    ),
    "ctx.data": ("ctx.data = 3\nreturn x", "return g * ctx.data", "x"),
    "data of something else": ("ctx.n = batch.data\nreturn x", "return g, None", "x, batch"),
    "a list of gradients": ("return x", "grads = [None, None]\ngrads[0] = g\nreturn tuple(grads)", "x, y"),
    "the loop variable of a new list": (
        "return x",
        "out = torch.zeros_like(g)\nfor i in range(3):\n    out[i] = g[i]\nreturn out",
        "x",
    ),
    "an early None that is never taken": (
        "return x",
        "if not any(ctx.needs_input_grad):\n    return None\nreturn g, None",
        "x, y",
    ),
    "a constant input made contiguous elsewhere": (
        "x, cos = prepare(x, cos)\nctx.save_for_backward(cos)\nreturn x * cos",
        "(cos,) = ctx.saved_tensors\nreturn g * cos, None",
        "x, cos",
    ),
    "suppressed": ("return x", "g.mul_(2)  # gradsmith: ignore[inplace-grad]\nreturn g", "x"),
    "a tensor dropped in backward": (
        "y = x.exp()\nctx.y = y\nreturn y * 2",
        "y = ctx.y\nctx.y = None\nreturn g * y",
        "x",
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_correct_idioms_stay_silent(name: str) -> None:
    forward, backward, inputs = SILENT[name]
    assert rules_of(forward, backward, inputs) == []


LOUD = {
    "in place through an alias": ("return x", "h = g\nh.add_(1)\nreturn h", "x", "inplace-grad"),
    "in place through a view": ("return x", "flat = g.view(-1)\nflat[0] = 0\nreturn g", "x", "inplace-grad"),
    "in place after contiguous": ("return x", "g = g.contiguous()\ng.mul_(2)\nreturn g", "x", "inplace-grad"),
    "in place in a branch": ("return x", "if ctx.n > 1:\n    g /= ctx.n\nreturn g", "x", "inplace-grad"),
    "out=": ("return x", "torch.mul(g, 2, out=g)\nreturn g", "x", "inplace-grad"),
    "only one branch clones": ("return x", "if ctx.n:\n    g = g.clone()\ng.mul_(2)\nreturn g", "x", "inplace-grad"),
    "annotated tensor on ctx": (
        "ctx.w = w\nreturn x * w",
        "return g * ctx.w, None",
        "x, w: torch.Tensor",
        "tensor-on-ctx",
    ),
    "saved and on ctx": (
        "ctx.save_for_backward(x)\nctx.x = x\nreturn x",
        "(x,) = ctx.saved_tensors\nreturn g * ctx.x",
        "x",
        "tensor-on-ctx",
    ),
    "one gradient for two inputs": ("return x * y", "return g * 2", "x, y", "return-count"),
    "one path is short": ("return x * y", "if ctx.n:\n    return g, g\nreturn g,", "x, y", "return-count"),
    "too many": ("return x", "return g, g", "x", "return-count"),
    "fewer with varargs": ("return x", "return g,", "x, y, *rest", "return-count"),
    "an int saved": (
        "ctx.save_for_backward(x, n)\nreturn x",
        "x, n = ctx.saved_tensors\nreturn g, None",
        "x, n: int",
        "save-nontensor",
    ),
    "a list saved": ("ctx.save_for_backward([x])\nreturn x", "x = ctx.saved_tensors\nreturn g", "x", "save-nontensor"),
    "an index too far": ("ctx.save_for_backward(x)\nreturn x", "return g * ctx.saved_tensors[1]", "x", "unpack-count"),
    "a tuple times a tensor": (
        "ctx.save_for_backward(x)\nreturn x**2",
        "x = ctx.saved_tensors\nreturn 2 * (g * x)",
        "x",
        "unpack-count",
    ),
    "a tuple's shape": (
        "ctx.save_for_backward(x)\nreturn 2 * x",
        "x = ctx.saved_tensors\nreturn g.view(x.shape) * 2",
        "x",
        "unpack-count",
    ),
    "data of an input": ("return x.data.clone() + x.contiguous()", "return g", "x", "data-attr"),
    "einsum for nothing": (
        "ctx.save_for_backward(x, w)\nreturn x @ w",
        "x, w = ctx.saved_tensors\ngw = torch.einsum('bi,bo->io', x, g)\nreturn g * 2, gw",
        "x, w",
        "wasted-gradient",
    ),
    "a tensor on ctx in the wrong branch": (
        "if torch.is_tensor(b):\n    ctx.b = b\nctx.save_for_backward(x, b)\nreturn x * b",
        "x, b = ctx.saved_tensors\nreturn g * ctx.b, g * x",
        "x, b",
        "tensor-on-ctx",
    ),
    "a view saved": (
        "ctx.save_for_backward(x.t())\nreturn x * 2",
        "(xt,) = ctx.saved_tensors\nreturn g * xt.t()",
        "x",
        "intermediate-saved",
    ),
}


@pytest.mark.parametrize("name", LOUD)
def test_defects_in_unusual_clothes(name: str) -> None:
    forward, backward, inputs, rule = LOUD[name]
    assert rules_of(forward, backward, inputs) == [rule]


def test_classmethod_style_counts_inputs_after_ctx() -> None:
    text = """
import torch
class Fn(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x, y):
        return x * y
    @classmethod
    def backward(cls, ctx, g):
        return g, g
"""
    assert lint_source(text, select=PHASE_ONE).findings == []


def test_a_class_line_suppresses_the_whole_class() -> None:
    text = """
import torch
class Fn(torch.autograd.Function):  # gradsmith: ignore[inplace-grad]
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        return g.mul_(2)
"""
    assert lint_source(text).findings == []
    others = lint_source(text.replace("inplace-grad", "return-count")).findings
    assert [f.rule for f in others if f.rule != "unused-ignore"] == ["inplace-grad"]


def test_a_base_class_is_reported_once() -> None:
    text = """
import torch
class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        return g.mul_(2)
class A(Base):
    pass
class B(Base):
    pass
"""
    (finding,) = lint_source(text).findings
    assert finding.function == "Base"


def test_custom_ops_get_the_same_rules() -> None:
    text = """
import torch
@torch.library.custom_op("lib::f", mutates_args=())
def f(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n
def setup_context(ctx, inputs, output):
    x, ctx.n = inputs
    ctx.x = x.contiguous()
def backward(ctx, g):
    return g.mul_(ctx.n)
torch.library.register_autograd("lib::f", backward, setup_context=setup_context)
"""
    assert sorted(f.rule for f in lint_source(text, select=PHASE_ONE).findings) == [
        "inplace-grad", "return-count", "tensor-on-ctx",
    ]  # fmt: skip


_DEFAULTS = """
import torch
from abc import abstractmethod

class Fn(torch.autograd.Function):
    {head}
    @staticmethod
    def forward(ctx, x, a=1, b=2):
        return x * a * b
    @staticmethod
    def backward(ctx, g):
        return g * 2, None

{use}
"""


@pytest.mark.parametrize(
    ("head", "use", "severities"),
    [
        ("", "y = Fn.apply(1.0)", []),
        ("", "y = Fn.apply(1.0, 1)", []),
        ("", "y = Fn.apply(1.0, 1, 2)", ["error"]),
        ("", "", ["warning"]),
        ("@abstractmethod\n    def rule(x): ...", "", []),
    ],
)
def test_a_default_without_a_gradient_depends_on_who_passes_it(head: str, use: str, severities: list[str]) -> None:
    found = lint_source(_DEFAULTS.format(head=head, use=use), select=("return-count",)).findings
    assert [f.severity for f in found] == severities

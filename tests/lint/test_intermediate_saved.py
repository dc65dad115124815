"""intermediate-saved is a warning exactly where a second derivative comes out wrong without an error: every case is run."""

from __future__ import annotations

import textwrap

import pytest
import torch

from gradsmith.findings import Finding
from gradsmith.linting import lint_source

ABOVE = """
import torch


class Kernel:
    def __getitem__(self, grid):
        def launch(a, b, out):
            with torch.no_grad():
                out.copy_(a * b)

        return launch


kernel = Kernel()


def slope(square, g):
    wide = square.view(-1)
    return g, (g.view(-1) * 3 * wide).view(g.shape)


def launched(a, b):
    out = torch.empty_like(a)
    kernel[(1,)](a, b, out)
    return out


def from_ctx(context, g):
    (square,) = context.saved_tensors
    return g * square * 3
"""
TEMPLATE = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, g):
{backward}

    @staticmethod
    def triple(square, g):
        return square * g * 3
"""
WRONG = {
    "plain": "(s,) = ctx.saved_tensors\nreturn g * 3 * s",
    "by index": "return g * 3 * ctx.saved_tensors[0]",
    "by a slice": "saved = ctx.saved_tensors\n(s,) = saved[0:]\nreturn g * 3 * s",
    "a function of the file": "(s,) = ctx.saved_tensors\n_, gx = slope(s, g=g)\nreturn gx",
    "a method of the class": "(s,) = ctx.saved_tensors\nreturn Cube.triple(s, g)",
    "a nested function": "def of(s):\n    return 3 * s\nreturn of(ctx.saved_tensors[0]) * g",
    "a function that gets ctx": "return from_ctx(ctx, g)",
    "a slot write": "(s,) = ctx.saved_tensors\nout = torch.zeros_like(g)\nout[:] = g * 3 * s\nreturn out",
    "in place through a view": "(s,) = ctx.saved_tensors\nout = torch.zeros_like(g)\nv = out[0:]\nv.add_(g * 3 * s)\nreturn out",
    "a list": "(s,) = ctx.saved_tensors\nout = []\nfor i in range(len(s)):\n    out.append(g[i] * 3 * s[i])\nreturn torch.stack(out)",
    "augmented": "(s,) = ctx.saved_tensors\ngx = 3 * g\ngx *= s\nreturn gx",
    "on one of two paths": "(s,) = ctx.saved_tensors\nreturn g * 3 * s if g.dim() else s",
}
WITHOUT_GRAPH = {
    "a kernel": "(s,) = ctx.saved_tensors\nout = torch.empty_like(g)\nkernel[(1,)](3 * s, g, out)\nreturn out",
    "a function that launches one": "(s,) = ctx.saved_tensors\nreturn launched(3 * s, g).view(g.shape)",
    "a kernel's result and the intermediate": "(s,) = ctx.saved_tensors\nthrice = launched(g, torch.full_like(g, 3))\nreturn thrice * s",
    "no_grad": "(s,) = ctx.saved_tensors\nwith torch.no_grad():\n    gx = g * 3 * s\nreturn gx",
    "detached": "(s,) = ctx.saved_tensors\ngx = g * 3 * s\nreturn gx.detach()",
}


def test_a_count_from_a_function_has_no_derivative() -> None:
    text = """
import torch


def support(x):
    ordered = x.sort(-1, descending=True).values
    inside = ordered * 2 > ordered.cumsum(-1)
    return ordered, inside.sum(-1).unsqueeze(-1)


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ordered, size = support(x)
        ctx.save_for_backward(size)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (size,) = ctx.saved_tensors
        return g * 2 + g.sum(-1, keepdim=True) / size.to(g.dtype)
"""
    assert found_in("", text) == []
    assert [
        f.severity for f in found_in("", text.replace("save_for_backward(size)", "save_for_backward(ordered)"))
    ] == ["warning"]


def found_in(backward: str, file: str = ABOVE + TEMPLATE) -> list[Finding]:
    text = file.replace("{backward}", textwrap.indent(backward, " " * 8))
    return lint_source(text, select=["intermediate-saved"], debug=True).findings


def first_gradient(backward: str) -> tuple[torch.Tensor, torch.Tensor]:
    """x, and the gradient of x**3 as this backward computes it, ready to be differentiated again."""
    scope: dict[str, type[torch.autograd.Function]] = {}
    exec((ABOVE + TEMPLATE).replace("{backward}", textwrap.indent(backward, " " * 8)), scope)
    x = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    seed = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(scope["Cube"].apply(x), x, seed, create_graph=True)
    torch.testing.assert_close(gradient.detach(), 3 * x.detach() ** 2)
    return x, gradient


@pytest.mark.parametrize("name", WRONG)
def test_a_second_derivative_that_is_silently_wrong_is_a_warning(name: str) -> None:
    (finding,) = found_in(WRONG[name])
    assert (finding.severity, "'square'" in finding.message) == ("warning", True)
    x, gradient = first_gradient(WRONG[name])
    assert gradient.requires_grad
    (second,) = torch.autograd.grad(gradient.sum(), x, allow_unused=True)  # the truth is 6 * x
    assert second is None or not torch.allclose(second, 6 * x)


@pytest.mark.parametrize("name", WITHOUT_GRAPH)
def test_a_gradient_without_a_graph_is_no_warning(name: str) -> None:
    assert [f for f in found_in(WITHOUT_GRAPH[name]) if f.severity != "info"] == []
    _, gradient = first_gradient(WITHOUT_GRAPH[name])
    assert not gradient.requires_grad  # differentiating it raises: nothing is silent


def test_code_outside_the_file_is_remarked_upon() -> None:
    outside = "from elsewhere import cube_backward\n" + ABOVE + TEMPLATE
    (finding,) = found_in("(s,) = ctx.saved_tensors\nreturn cube_backward(s, g)", outside)
    assert (finding.severity, "outside this file" in finding.message) == ("info", True)


def test_a_kernel_in_backward_is_left_to_opaque_backward() -> None:
    assert found_in(WITHOUT_GRAPH["a kernel"]) == []


def test_only_tensors_on_the_record_are_named() -> None:
    text = (ABOVE + TEMPLATE).replace("save_for_backward(square)", "save_for_backward(square, x.sin())")
    (finding,) = found_in("s, other = ctx.saved_tensors\nunused = launched(other, g)\nreturn g * 3 * s", text)
    assert "'square'" in finding.message and "sin" not in finding.message


def test_branches_that_save_different_tensors_are_told_apart() -> None:
    text = """
import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, flag):
        ctx.flag = flag
        if flag:
            ctx.save_for_backward(x, x * w)
        else:
            ctx.save_for_backward(x, w, x.exp())
        return x * w

    @staticmethod
    def backward(ctx, g):
        if ctx.flag:
            x, xw = ctx.saved_tensors
            return g * xw / x, g * x, None
        x, w, e = ctx.saved_tensors
        return g * w, g * x, None
"""
    (finding,) = found_in("", text)
    assert "'x * w'" in finding.message and "exp" not in finding.message


def test_what_comes_from_inputs_without_a_gradient_is_constant() -> None:
    text = """
import torch


def prepared(x, cos):
    cos = cos.contiguous().reshape(-1)
    return x * cos, cos


class Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos):
        out, table = prepared(x, cos)
        ctx.save_for_backward(table)
        return out

    @staticmethod
    def backward(ctx, g):
        (table,) = ctx.saved_tensors
        return g * table, None
"""
    assert found_in("", text) == []
    assert [f.rule for f in found_in("", text.replace("g * table, None", "g * table, g"))] == ["intermediate-saved"]


def test_a_slice_of_the_outputs_of_a_custom_op_holds_outputs() -> None:
    text = """
import torch


@torch.library.custom_op("lib::f", mutates_args=())
def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return x * x, x.sin(), x.cos()


def setup_context(ctx, inputs, output):
    _, sine = output[:2]
    ctx.save_for_backward(sine)


def backward(ctx, g, *others):
    (sine,) = ctx.saved_tensors
    return g * sine


f.register_autograd(backward, setup_context=setup_context)
"""
    assert found_in("", text) == []
    assert len(found_in("", text.replace("_, sine = output[:2]", "(x,) = inputs\n    sine = x.sin()"))) == 1


def test_indices_stay_indices_when_an_option_moves_them() -> None:
    text = """
import torch


class MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, stride):
        y, place = x.unfold(1, stride, stride).max(-1)
        place = place + stride * torch.arange(y.shape[1])
        ctx.save_for_backward(place)
        ctx.length = x.shape[1]
        return y

    @staticmethod
    def backward(ctx, g):
        (place,) = ctx.saved_tensors
        return g.new_zeros(g.shape[0], ctx.length).scatter_add(1, place, g * 1), None
"""
    assert found_in("", text) == []
    values = text.replace("y, place =", "place, y =").replace("scatter_add(1, place, g * 1)", "add(g * place)")
    assert [f.rule for f in found_in("", values)] == ["intermediate-saved"]

"""What a FunctionModel knows: signatures, saves, unpackings, returns, roles."""

from __future__ import annotations

import ast

import pytest
from source_texts import HEADER, body, function


def test_signature_styles() -> None:
    found = function(
        HEADER
        + """
class Fn(Function):
    @classmethod
    def forward(cls, ctx, x: torch.Tensor, eps: float = 1e-5, *rest, flag=True, **more):
        return x
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads):
        raise NotImplementedError
"""
    )
    forward, backward = found.forward, found.backward
    assert forward is not None
    assert backward is not None
    assert (forward.binder, forward.ctx) == ("class", "ctx")
    assert [(p.name, p.kind) for p in forward.params] == [
        ("x", "positional"), ("eps", "positional"), ("rest", "vararg"), ("flag", "keyword"), ("more", "kwarg"),
    ]  # fmt: skip
    assert [p.declared.kind for p in forward.params[:2]] == ["tensor", "float"]
    assert found.once_differentiable
    assert backward.raises_only
    assert not found.has_gradient


def test_setup_context_style_has_no_ctx_in_forward() -> None:
    found = function(
        HEADER
        + """
class Fn(Function):
    @staticmethod
    def forward(x, w): return x * w
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        mask = x > 0
        twice = x * 2
        ctx.save_for_backward(x, output, mask, twice)
    @staticmethod
    def backward(ctx, g): return g, g
"""
    )
    assert found.forward is not None
    assert found.forward.ctx is None
    assert [p.name for p in found.inputs] == ["x", "w"]
    (save,) = found.saves
    assert [found.role_of_saved(save, e) for e in save.exprs] == ["input", "output", "intermediate", "intermediate"]
    assert [save.method.value(e).constant for e in save.exprs] == [False, False, True, False]


def test_setup_context_may_be_inherited() -> None:
    from source_texts import functions

    _, leaf = functions(
        HEADER
        + """
class Base(Function):
    @staticmethod
    def setup_context(ctx, inputs, output): pass
class Leaf(Base):
    @staticmethod
    def forward(x): return x
    @staticmethod
    def backward(ctx, g): return g
"""
    )
    assert [p.name for p in leaf.inputs] == ["x"]


@pytest.mark.parametrize(
    ("statements", "count"),
    [
        ("return g, None", 2),
        ("return (g,) + (None,) * 3", 4),
        ("out = g, g\nreturn out", 2),
        ("return g * 2", 1),
        ("return None", 1),
        ("return", 1),
        ("return (g, *(None, None))", 3),
        ("return tuple([g, g])", 2),
        ("return helper(g)", None),
        ("grads = [g]\ngrads.append(g)\nreturn tuple(grads)", None),
        ("return g, *ctx.saved_tensors", None),
        ("if c:\n    out = (g,)\nelse:\n    out = (g, g)\nreturn out", None),
    ],
)
def test_how_many_values_a_return_has(statements: str, count: int | None) -> None:
    backward = body("return x", statements).backward
    assert backward is not None
    (found,) = backward.returns
    assert (None if found.elements is None else len(found.elements)) == count


def test_returns_of_nested_functions_do_not_count() -> None:
    backward = body("return x", "def inner():\n    return 1, 2\nif g is None:\n    return None\nreturn g").backward
    assert backward is not None
    assert [ast.unparse(r.node) for r in backward.returns] == ["return None", "return g"]


def test_everything_done_with_ctx() -> None:
    found = body(
        """
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, *rest)
        ctx.mark_dirty(x)
        ctx.shape, ctx.n = x.shape, 3
        return x
        """,
        """
        a, *b = ctx.saved_tensors
        first = ctx.saved_tensors[0]
        if ctx.needs_input_grad[0]:
            return g * ctx.n + getattr(ctx, "shape")[0]
        return None
        """,
    )
    (save,) = found.saves
    assert [ast.unparse(e) for e in save.exprs] == ["x"]
    assert save.starred
    assert [m.name for m in found.marks] == ["set_materialize_grads", "mark_dirty"]
    assert [(w.attr, ast.unparse(w.value)) for w in found.ctx_writes if w.value] == [("shape", "x.shape"), ("n", "3")]
    assert [(u.exact, u.position) for u in found.unpacks] == [(False, None), (False, 0)]
    assert sorted(r.attr for r in found.ctx_reads) == ["n", "shape"]
    assert not found.materializes
    assert not found.ctx_escapes
    assert body("save(ctx, x)\nreturn x").ctx_escapes


@pytest.mark.parametrize(
    ("forward", "role"),
    [
        ("ctx.save_for_backward(x)\nreturn x * 2", "input"),
        ("y = x * 2\nctx.save_for_backward(y)\nreturn y", "output"),
        ("y = x * 2\nctx.save_for_backward(y)\nz = y\nreturn z, x", "output"),
        ("y = x * 2\nctx.save_for_backward(y)\nreturn y * 3", "intermediate"),
        ("y = x * 2\nctx.save_for_backward(y)\nreturn y.view(-1)", "intermediate"),
        ("ctx.save_for_backward(x.t())\nreturn x * 2", "view"),
        ("x = x.contiguous()\nctx.save_for_backward(x)\nreturn x * 2", "input"),
        ("outs = []\ny = x * 2\nouts.append(y)\nctx.save_for_backward(y)\nreturn tuple(outs)", "unknown"),
        ("ctx.save_for_backward(None)\nreturn x", "none"),
        ("y, m = kernel(x)\nctx.save_for_backward(m)\nreturn y", "intermediate"),
        ("ctx.save_for_backward(CONSTANT)\nreturn x", "unknown"),
    ],
)
def test_roles_of_saved_tensors(forward: str, role: str) -> None:
    found = body(forward)
    (save,) = found.saves
    assert found.role_of_saved(save, save.exprs[0]) == role


def test_declarations() -> None:
    assert body("return x").declaration is None
    for line in (
        "class Fn(Function):  # gradsmith: surrogate[straight-through]",
        "# gradsmith: surrogate[straight-through]\nclass Fn(Function):",
    ):
        found = function(f"{HEADER}\n{line}\n    @staticmethod\n    def backward(ctx, g): return g\n")
        assert found.declaration is not None
        assert (found.declaration.gradient, found.declaration.kind) == ("surrogate", "straight-through")
    found = function("import gradsmith as gs\n" + HEADER + "@gs.surrogate('clip')\nclass Fn(Function):\n    pass\n")
    assert found.declaration is not None
    assert found.declaration.kind == "clip"


def test_positions_are_characters() -> None:
    found = function(HEADER + "class Fn(Function):\n    @staticmethod\n    def backward(ctx, g): é = 'ü'; g.mul_(2)\n")
    assert found.backward is not None
    finding = found.at(found.backward.writes[0].node, "m")
    assert finding.snippet[finding.column : finding.end_column] == "g.mul_(2)"

"""What is known of a value, whose memory it is, who writes into it, and under which condition."""

from __future__ import annotations

import ast

import pytest
from source_texts import body, method


def returned(text: str, signature: str = "x: torch.Tensor, n: int, y=None, eps=1e-5"):
    found = method(text, signature)
    value = found.returns[-1].node.value
    assert value is not None
    return found, value


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("x", "tensor"), ("n", "int"), ("y", "unknown"), ("eps", "float"), ("x.shape", "shape"), ("x.shape[0]", "int"),
        ("x.size(0)", "int"), ("x.size()", "shape"), ("x.dtype", "dtype"), ("x.sum().item()", "number"),
        ("torch.exp(x) * 2", "tensor"), ("x @ y", "tensor"), ("x > 0", "tensor"), ("n > 0", "bool"),
        ("y is None", "bool"),
        ("x[0]", "tensor"), ("x.max(dim=1)", "tuple"), ("x.max()", "tensor"), ("len(y)", "int"),
        ("helper(x)", "unknown"),
        ("self.linear(x)", "unknown"), ("x if n else None", "tensor"), ("x if n else 3", "unknown"), ("[x]", "list"),
        ("F.relu(x)", "tensor"), ("n / 2", "float"), ("x.numpy()", "ndarray"), ("-x", "tensor"), ("None", "none"),
    ],
)  # fmt: skip
def test_kinds(expression: str, kind: str) -> None:
    found, value = returned(f"return {expression}")
    assert found.value(value).kind == kind


@pytest.mark.parametrize(
    ("expression", "elements", "constant"),
    [
        ("x.argmax()", "integer", True), ("x > 0", "bool", True), ("(x > 0).float()", "floating", True),
        ("torch.rand_like(x)", "", True), ("x * torch.rand_like(x)", "", False), ("torch.arange(n)", "integer", True),
        ("x.long()", "integer", True), ("torch.zeros(3, dtype=torch.int64)", "integer", True), ("x * 2", "", False),
    ],
)  # fmt: skip
def test_elements_and_constants(expression: str, elements: str, constant: bool) -> None:
    found, node = returned(f"return {expression}")
    value = found.value(node)
    assert (value.elements, value.constant) == (elements, constant)


def test_use_shows_that_an_argument_is_a_tensor() -> None:
    found, value = returned("z = a.contiguous()\nreturn a, b, c", "a, b, c")
    assert isinstance(value, ast.Tuple)
    assert [found.value(e).kind for e in value.elts] == ["tensor", "unknown", "unknown"]
    assert method("torch.zeros(n)\nreturn n", "n").returns[0].elements is None


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("out = g", {("grad_output", "g", True, True)}),
        ("out = g.view(-1)", {("grad_output", "g", False, True)}),
        ("out = g[1:]", {("grad_output", "g", False, True)}),
        ("out = g[g > 0]", set()),
        ("out = g.contiguous()", {("grad_output", "g", True, False)}),
        ("out = g.clone()", set()),
        ("out = g * 2", set()),
        ("out = g\nout = out.clone()", set()),
        ("out = g\nif c:\n    out = out.clone()", {("grad_output", "g", True, False)}),
        ("out = g.clone()\nout += g", set()),
        ("g += 1\nout = g", {("grad_output", "g", True, True)}),
        ("a, b = ctx.saved_tensors\nout = b", {("saved", "b", True, True)}),
        ("out = ctx.saved_tensors[1]", {("saved", "ctx.saved_tensors[1]", True, True)}),
        ("out = ctx.buffer", {("ctx", "buffer", True, True)}),
        ("a, out = g.chunk(2)", {("grad_output", "g", False, True)}),
        ("out = g.mul_(2)", {("grad_output", "g", True, True)}),
        ("for i in range(3):\n    out = g\n    g = out * 2", {("grad_output", "g", True, False)}),
    ],
)
def test_whose_memory(statements: str, expected: set[tuple[str, str, bool, bool]]) -> None:
    backward = body("return x", statements + "\nreturn out").backward
    assert backward is not None
    value = backward.returns[0].node.value
    assert value is not None
    assert {(s.owner, s.name, s.same_object, s.certain) for s in backward.sources(value)} == expected


@pytest.mark.parametrize(
    ("statement", "how"),
    [
        ("g.mul_(2)", ["mul_"]), ("g *= 2", ["*="]), ("g[0] = 1", ["[]="]), ("g[0] += 1", ["[]="]),
        ("torch.mul(g, 2, out=g)", ["out="]), ("F.relu(g, inplace=True)", ["inplace=True"]),
        ("torch.relu_(g)", ["relu_"]),
        ("g.data.zero_()", ["zero_"]), ("n = 0\nn += 1", []), ("g.requires_grad_()", []), ("d = {}\nd['k'] = g", []),
        ("grads = [None]\ngrads[0] = g", []), ("g.squeeze_()", []),
    ],
)  # fmt: skip
def test_writes(statement: str, how: list[str]) -> None:
    backward = body("return x", statement + "\nreturn g").backward
    assert backward is not None
    assert [w.how for w in backward.writes] == how


def test_guards_and_needs_input_grad() -> None:
    backward = body(
        "return x",
        """
        gx = gw = None
        need = ctx.needs_input_grad[1]
        if ctx.needs_input_grad[0]:
            gx = g @ w
        if need and g is not None:
            gw = g.t() @ x
        gb = g.sum(0) if any(ctx.needs_input_grad) else None
        free = g @ g
        if g is None:
            return None
        last = g @ g
        return gx, gw
        """,
    ).backward
    assert backward is not None
    products = [n for n in backward.nodes if backward.op(n) == "matmul"]
    assert [backward.needs_tested(n) for n in products] == [{0}, {1}, frozenset(), frozenset()]
    (total,) = [c.node for c in backward.calls if c.op == "sum"]
    assert backward.needs_tested(total) is None
    from gradsmith.source import not_none

    assert [not_none(backward, n, "g") for n in products] == [False, True, False, True]


def test_calls_that_autograd_cannot_see() -> None:
    backward = body(
        "return x",
        """
        kernel[grid](g, 3)
        p = g.data_ptr()
        mylib._C.backward(g)
        torch.ops.mylib.bwd(g)
        h = torch.exp(g)
        h = helper(g)
        return g.cpu().numpy()
        """,
    ).backward
    assert backward is not None
    assert [ast.unparse(c.node.func) for c in backward.calls if c.is_opaque] == [
        "kernel[grid]", "g.data_ptr", "mylib._C.backward", "torch.ops.mylib.bwd", "g.cpu().numpy",
    ]  # fmt: skip

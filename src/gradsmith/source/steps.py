"""Loops over time in a layer: which loops they are, what each step reads, whether a gradient flows through it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.source import knowledge as know
from gradsmith.source.layer import LayerModel, Loop
from gradsmith.source.lexicon import is_a
from gradsmith.source.loop_text import FEW
from gradsmith.source.loops import body_nodes, bound_names, carried, depends_on
from gradsmith.source.walk import nodes_under, once

if TYPE_CHECKING:
    from gradsmith.source.method import Method

_NO_GRADIENT = ("no_grad", "inference_mode")


class TimeIndex(NamedTuple):
    """`x[t]` or `x[:, t]` in a loop: the tensor's name, the dimension that is indexed, the place."""

    name: str
    dimension: int
    node: ast.Subscript


@once
def time_loops(layer: LayerModel) -> list[Loop]:
    """Loops that may go through time: not over modules, not over a handful of things, not without gradients."""
    return [
        loop
        for loop in layer.loops
        if isinstance(loop.node, ast.For)
        and not _goes_through_parts(loop)
        and not without_gradient(loop.method, loop.node)
    ]


def _goes_through_parts(loop: Loop) -> bool:
    """Over layers, heads, scales: what the header mentions says so; or a literal number of times."""
    header = loop.node.iter if isinstance(loop.node, ast.For) else loop.node.test
    text = ast.unparse(header)
    if isinstance(loop.node, ast.For):
        text += " " + ast.unparse(loop.node.target)
    length = loop.method.resolve(loop.length) if loop.length is not None else None
    if isinstance(length, ast.Constant) and isinstance(length.value, int) and length.value <= FEW:
        return True
    if loop.iterated is not None and _holds_own_parts(loop.iterated):
        return True
    if any(_is_several(loop.method, part) for part in nodes_under(header)):
        return True
    return is_a(text, "part of a model")


def _is_several(method: Method, node: ast.AST) -> bool:
    """`*skips`: as many as the call passes, each with a name or a place of its own."""
    param = method.param_of(node) if isinstance(node, ast.Name) else None
    return param is not None and param.kind == "vararg"


def _holds_own_parts(iterated: ast.expr) -> bool:
    """`self.layers`, `zip(self.layers, states)`, `self.children()`; not `self.project(x).unbind(0)`, which is a tensor."""
    nodes = nodes_under(iterated)
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call) and n.args}
    return any(_is_self(n) and id(n) not in called for n in nodes)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def is_forward(method: Method) -> bool:
    """Runs when the layer is trained: `forward`, or a method named after it."""
    return "forward" in method.name


def without_gradient(method: Method, node: ast.AST) -> bool:
    """Under `torch.no_grad()`, as a decorator or a with statement."""
    if method.decorated_with(*_NO_GRADIENT):
        return True
    if not method.file.mentions(*_NO_GRADIENT):
        return False  # as in most files: nothing around the node needs to be looked at
    around = (a for a in method.ancestors(node) if isinstance(a, ast.With))
    return any(name in ast.unparse(item.context_expr) for w in around for item in w.items for name in _NO_GRADIENT)


def is_recurrent(loop: Loop) -> bool:
    """Each step needs what the one before left behind."""
    return bool(carried(loop))


def time_indices(loop: Loop) -> list[TimeIndex]:
    """Every plain `x[t]`, `x[:, t]`, `x[:, t, :]` in the body, where x is a tensor that the body does not change."""
    found = []
    bound = bound_names(loop)
    for node in loop.subscripts():
        if not isinstance(node.value, ast.Name) or node.value.id in bound or not isinstance(node.ctx, ast.Load):
            continue
        dimension = _dimension(node, loop.index)
        if dimension is not None and _is_tensor(loop, node) and not _leaves_torch(loop, node):
            found.append(TimeIndex(node.value.id, dimension, node))
    return found


def _leaves_torch(loop: Loop, node: ast.Subscript) -> bool:
    """`lengths[i].item()`, `height, width = sizes[i]`: numbers are read, and no gradient flows."""
    parent = loop.method.file.parents.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("item", "cpu", "numpy", "tolist", "long", "int")
    return isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple)


def _dimension(node: ast.Subscript, index: str | None) -> int | None:
    """The dimension that the counter picks from, where all others are taken whole."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    at = [i for i, p in enumerate(parts) if isinstance(p, ast.Name) and p.id == index]
    rest = [p for p in parts if not (isinstance(p, ast.Name) and p.id == index)]
    whole = all(isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None for p in rest)
    return at[0] if len(at) == 1 and whole else None


def _is_tensor(loop: Loop, node: ast.Subscript) -> bool:
    method, name = loop.method, node.value
    assert isinstance(name, ast.Name)
    value = method.value(name)
    if value.is_tensor:
        return True
    if value.kind != "unknown" or is_a(name.id, "integer"):
        return False
    if isinstance(node.slice, ast.Tuple):
        return True
    # `x[t]` alone could be a list: the loop's length must come from x's shape, or from any where a module made x.
    made = method.resolve(name)
    by_module = isinstance(made, ast.Call) and _is_self(made.func)
    return loop.length is not None and _measures(method, loop.length, None if by_module else name.id)


def _measures(method: Method, length: ast.expr, name: str | None) -> bool:
    """`x.shape[0]`, `x.size(0)`, or a name unpacked from `x.shape`; `len(x)` where x has a shape elsewhere."""
    pieces: list[ast.AST] = [length]
    if isinstance(length, ast.Name):
        pieces += [b.value for b in method.definitions(length) if b.value is not None]
    of = [
        p.args[0]
        for p in pieces
        if isinstance(p, ast.Call) and isinstance(p.func, ast.Name) and p.func.id == "len" and p.args
    ]
    if any(isinstance(one, ast.Name) and name in (None, one.id) for one in of):
        pieces += [n for n in method.of(ast.Attribute) if isinstance(n.value, ast.Name) and n.value.id == name]
    return any(
        isinstance(n, ast.Attribute)
        and n.attr in ("shape", "size")
        and isinstance(n.value, ast.Name)
        and name in (None, n.value.id)
        for piece in pieces
        for n in nodes_under(piece)
    )


def is_tracked(layer: LayerModel, method: Method, name: ast.Name) -> bool:
    """Certainly part of the graph: the output of one of this layer's modules, or a product with its parameters."""
    value = method.resolve(name)
    called = value.func if isinstance(value, ast.Call) else None
    if isinstance(called, ast.Attribute) and _is_self(called):
        return (layer.built(called.attr) or "").startswith("torch.nn.")
    if method.op(value) in know.LINEAR_ALGEBRA:
        return any(_is_self(n) for n in nodes_under(value))
    return False


def step_input(loop: Loop, node: ast.expr) -> bool:
    """Is this what the step reads from outside: `x[t]`, or the loop's own variable, untouched by the state?"""
    if depends_on(loop, node, carried(loop)):
        return False
    target = loop.node.target if isinstance(loop.node, ast.For) else None
    names = {n.id for n in nodes_under(target) if isinstance(n, ast.Name)} if target is not None else set()
    return bool(names) and depends_on(loop, node, frozenset(names))


def assignments(loop: Loop, name: str) -> list[ast.stmt]:
    """The statements of the body that give `name` a value."""
    return [
        node
        for node in body_nodes(loop)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        and any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for n in nodes_under(target)
        )
    ]


def engine_offer(layer: LayerModel, loop: Loop, dimension: int) -> str:
    """Who else could run the loop: `gs.Recurrent` where its body calls one cell, else `gs.scan`; empty where no step needs the last."""
    if not is_recurrent(loop):
        return ""
    state = carried(loop)
    calls = [n for n in body_nodes(loop) if isinstance(n, ast.Call) and _is_self(n.func) and len(n.args) == 2]
    cells = {n.func.attr for n in calls if isinstance(n.func, ast.Attribute) and depends_on(loop, n.args[1], state)}
    if len(cells) == 1:
        first = ", batch_first=True" if dimension == 1 else ""
        return f" Or let `gs.Recurrent(self.{cells.pop()}{first})` run the whole loop as compiled C."
    x = "x" if dimension == 0 else f"x.transpose(0, {dimension})"
    return (
        f" Or write the body as `step(x_t, state) -> (y_t, state)`: `gs.scan(step, {x}, state)` runs it as compiled C."
    )

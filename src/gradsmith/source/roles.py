"""Who is who: is a saved tensor an input, an output or an intermediate; which outputs carry a gradient."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from gradsmith.source import knowledge as know
from gradsmith.source.behind import body_called
from gradsmith.source.returns import tuple_elements

if TYPE_CHECKING:
    from gradsmith.source.flow import Binding
    from gradsmith.source.method import Method
    from gradsmith.source.model import FunctionModel

SavedRole = Literal["input", "output", "intermediate", "view", "none", "unknown"]


def of_saved(function: FunctionModel, method: Method, node: ast.expr) -> SavedRole:
    """Only an input or output, the very object, keeps its place in the graph; "view" is a view of one of them."""
    if isinstance(node, ast.Constant) and node.value is None:
        return "none"
    found = method.sources(node)
    own = [s for s in found if s.owner in ("input", "output")]
    if any(s.same_object for s in own):
        return "input" if any(s.owner == "input" and s.same_object for s in own) else "output"
    if own:
        return "view" if all(s.certain for s in own) else "unknown"
    if _is_whole(method, node):
        return "unknown"
    if isinstance(node, ast.Name):
        bindings = set(method.definitions(node))
        returned = _returned(method)
        if bindings & returned:
            return "output"
        if (
            not bindings
            or any(b.how in ("other", "with", "import", "def") for b in bindings)
            or _collected(method, node)
        ):
            return "unknown"
        if any(_is_prepared(method, b) for b in bindings):
            return "unknown"
        value = method.resolve(node)
        if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Name):  # `x if needed else None`
            return of_saved(function, method, value)
    elif isinstance(node, (ast.Attribute, ast.Starred)):
        return "unknown"
    elif isinstance(node, ast.IfExp):
        parts = {of_saved(function, method, node.body), of_saved(function, method, node.orelse)} - {"none"}
        return parts.pop() if len(parts) == 1 else "unknown"
    elif isinstance(node, ast.Subscript) and not method.value(node).is_tensor:
        return "unknown"
    return "intermediate"


def _is_prepared(method: Method, binding: Binding) -> bool:
    """`x, w = converted(x, w)` by code that is not here: what comes back under its own name may be what was given."""
    call = binding.value
    if not isinstance(call, ast.Call) or binding.how not in ("assign", "unpack") or method.op(call) is not None:
        return False
    given = any(isinstance(a, ast.Name) and a.id == binding.name for a in call.args)
    return given and isinstance(call.func, ast.Name) and body_called(method, call.func) is None


def _is_whole(method: Method, node: ast.expr) -> bool:
    """`inputs` or `output` of setup_context, or `*args`, as a whole."""
    param = method.param_of(node)
    return param is not None and (param.kind != "positional" or param.role in ("inputs", "output"))


def _returned(method: Method) -> set[Binding]:
    """Assignments whose value leaves the method as an output, as the same object or perhaps so."""
    found: set[Binding] = set()
    for node in returned_expressions(method):
        while (
            isinstance(node, ast.Call) and method.op(node) in know.MAYBE_SAME and isinstance(node.func, ast.Attribute)
        ):
            node = node.func.value
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
        for part in parts:
            while isinstance(part, ast.Name):
                bindings = method.definitions(part)
                found.update(bindings)
                following = bindings[0].value if len(bindings) == 1 and bindings[0].how == "assign" else None
                if not isinstance(following, ast.Name):
                    break
                part = following
    return found


def returned_expressions(method: Method) -> list[ast.expr]:
    """Every expression that is returned, one by one where a tuple is spelled out."""
    out: list[ast.expr] = []
    for found in method.returns:
        if found.node.value is None:
            continue
        elements, _ = tuple_elements(method, found.node.value)
        if elements is not None:
            out += elements
        else:
            value = method.resolve(found.node.value)
            out += (
                [e.value if isinstance(e, ast.Starred) else e for e in value.elts]
                if isinstance(value, ast.Tuple)
                else []
            )
            out.append(found.node.value)
    return out


def _collected(method: Method, node: ast.Name) -> bool:
    """The name goes into a list somewhere, so it may be returned in it."""
    for other in method.nodes:
        if isinstance(other, ast.Name) and other.id == node.id and other is not node:
            parent = method.file.parents.get(other)
            if isinstance(parent, (ast.List, ast.Dict)):
                return True
            func = parent.func if isinstance(parent, ast.Call) and other in parent.args else None
            if isinstance(func, ast.Attribute) and func.attr in ("append", "extend", "insert"):
                return True
    return False


def all_outputs_marked(function: FunctionModel) -> bool:
    """Every output is passed to mark_non_differentiable, so backward never runs."""
    marks = [m for m in function.marks if m.name == "mark_non_differentiable"]
    forward = function.forward
    if not marks or forward is None:
        return False
    if any(m.starred for m in marks):
        return True
    marked = {ast.unparse(e) for m in marks for e in m.exprs}
    if function.setup_context is not None and function.setup_context.context.marks:
        params = function.setup_context.params
        return len(params) > 1 and params[1].name in marked
    outputs = returned_expressions(forward)
    return bool(outputs) and all(ast.unparse(o) in marked for o in outputs)


def all_outputs_scalar(function: FunctionModel) -> bool:
    """Every output is one number, as far as the source tells: a sum over everything, also divided or scaled."""
    forward = function.forward
    outputs = returned_expressions(forward) if forward is not None else []
    return forward is not None and bool(outputs) and all(_is_scalar(forward, o, 5) for o in outputs)


def _is_scalar(method: Method, node: ast.expr, depth: int) -> bool:
    node = method.resolve(node)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult) and depth:
        sides = [node.left, node.right]
        # A scalar divided by something unknown is one as long as that is no tensor with dimensions.
        one = any(_is_scalar(method, side, depth - 1) for side in sides)
        return one and all(
            _is_scalar(method, side, depth - 1) or method.resolve(side) is side or not method.value(side).is_tensor
            for side in sides
        )
    if not isinstance(node, ast.Call):
        return False
    op = method.op(node)
    if op in know.SUMMING:
        own = node.args[1:] if know.bare_op(method.dotted(node.func)) is not None else node.args
        return not own and not any(k.arg != "dtype" for k in node.keywords)
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return op in know.SAME_VALUES and inner is not None and bool(depth) and _is_scalar(method, inner, depth - 1)

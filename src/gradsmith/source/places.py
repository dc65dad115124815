"""Where in a Function something is written that a check has to say something about: a gradient, a save, a mark, a method, a change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.source.method import Method
    from gradsmith.source.model import FunctionModel

Part = Literal["gradient", "backward", "save", "mark", "kept", "vmap", "jvp", "changed", "memory"]


def line_of_part(model: FunctionModel, part: Part, name: str | None) -> int | None:
    """The line of a part of a Function; None where the class inherits it, or has more than one of the kind.

    "gradient" is what backward computes for the input `name`, else the head of backward; "save" is the one call of
    save_for_backward, "mark" the one of mark_non_differentiable, "kept" the one assignment to an attribute of ctx, "vmap" and
    "jvp" the heads of these methods. "changed" is the first line of backward that changes what outlives it, "memory" the first that reads
    memory without its strides; where there is none, the gradient.
    """
    if part in ("vmap", "jvp"):
        head = model.method(part)
        return _line(head.node) if head is not None and model.owner(head.node) is model.file else None
    if part in ("changed", "memory"):
        nodes = sorted(_in_backward(model, part), key=_line)
        if nodes and model.owner(nodes[0]) is model.file:
            return _line(nodes[0])
        part = "gradient"
    if part == "gradient" and name is not None and (line := line_of_gradient(model, name)) is not None:
        return line
    found: list[ast.Attribute] | list[ast.Call]
    if part == "save":
        found = [save.node for save in model.saves]
    elif part == "kept":
        found = [write.node for write in model.ctx_writes]
    elif part == "mark":
        found = [mark.node for mark in model.marks if mark.name == "mark_non_differentiable"]
    else:
        if model.backward is None or model.owner(model.backward.node) is not model.file:
            return None
        return model.backward.node.lineno
    return found[0].lineno if len(found) == 1 and model.owner(found[0]) is model.file else None


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _in_backward(model: FunctionModel, part: Part) -> Iterator[ast.AST]:
    backward = model.backward
    if backward is not None:
        yield from _changes(backward) if part == "changed" else _memory_read(backward)


def _changes(backward: Method) -> Iterator[ast.AST]:
    """Containers on ctx that are changed, attributes of ctx that are set, saved tensors that are written into."""
    for call in backward.calls:
        func = call.node.func
        if isinstance(func, ast.Attribute) and func.attr in know.CHANGES_CONTAINER:
            changed: ast.expr | None = func.value
        else:
            changed = call.node.args[0] if call.dotted == "next" and call.node.args else None
        if changed is not None and _on_ctx(backward, changed):
            yield call.node
    yield from (write.node for write in backward.context.writes)
    yield from (w.node for w in backward.writes if any(s.owner in ("saved", "ctx") for s in backward.sources(w.target)))


def _on_ctx(method: Method, node: ast.expr) -> bool:
    """`ctx.x`, or a name that holds it."""
    made = method.resolve(node)
    return isinstance(made, ast.Attribute) and method.context.is_ctx(made.value)


def _memory_read(backward: Method) -> Iterator[ast.AST]:
    for call in backward.calls:
        if call.op in know.READS_MEMORY or call.is_kernel or call.is_extension:
            yield call.node


def name_of_output(model: FunctionModel, index: int) -> str | None:
    """The name under which forward returns an output; None where it returns an expression, or in several places."""
    returns = model.forward.returns if model.forward is not None else []
    elements = returns[0].elements if len(returns) == 1 else None
    node = elements[index] if elements is not None and index < len(elements) else None
    return node.id if isinstance(node, ast.Name) else None


def cut(model: FunctionModel) -> tuple[ast.AST, str] | None:
    """What backward computes with but autograd takes for a constant: where it stands, and what to write instead.

    The first of: no_grad, a tensor that is detached or turned into numbers, compiled code; else a saved tensor that is neither
    an input nor an output. None where the source shows nothing of the kind.
    """
    backward = model.backward
    if backward is None or model.owner(backward.node) is not model.file:
        return None
    if backward.decorated_with(*know.GRAD_MODE_OFF):
        return backward.node, "Remove the decorator that turns grad mode off in backward"
    for call in backward.calls:
        name = (call.dotted or "").rpartition(".")[2]
        if name in know.GRAD_MODE_OFF:
            return call.node, f"Leave out {name}: autograd takes what is computed under it for a constant"
        if call.op in ("detach", "item", "tolist") or call.is_numpy:
            how = "NumPy" if call.is_numpy else f"`.{call.op}()`"
            return call.node, f"Do without {how}: autograd takes its result for a constant"
        if call.is_kernel or call.is_extension:
            shown = ast.unparse(call.node.func)
            return (
                call.node,
                f"Write `{shown}` as a Function with a backward of its own: autograd takes its result for a constant",
            )
    for save in model.saves:
        for kept in save.exprs:
            if model.role_of_value(save.method, kept) in ("intermediate", "view") and model.owner(kept) is model.file:
                named = ast.unparse(kept)
                return (
                    kept,
                    f"Compute '{named}' again in backward: autograd takes a saved tensor for a constant if it is neither an input nor an output",
                )
    return None


def line_of_gradient(model: FunctionModel, name: str) -> int | None:
    """The line in which backward computes what it returns for this input; None where the source does not say.

    Where several returns give a gradient, it is the first: which of them ran is not known from the source.
    """
    backward = model.backward
    index = next((p.index for p in model.inputs if p.name == name and p.kind == "positional"), None)
    if backward is None or index is None or model.owner(backward.node) is not model.file:
        return None
    given = [item.elements for item in backward.returns if item.elements is not None and index < len(item.elements)]
    for elements in given:
        node = elements[index]
        if not (isinstance(node, ast.Constant) and node.value is None):
            return backward.resolve(node).lineno
    return given[0][index].lineno if given else None

"""What stands behind an expression: the value of a name, and the body of a function that is called.

Every rule that follows a name back asks here, so that all of them agree on what is known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.source.method import Method


def behind(method: Method, node: ast.expr) -> ast.expr:
    """What a name stands for: in this method, at the top of the file, or in the body of a class there."""
    node = method.resolve(node)
    if isinstance(node, ast.Name) and method.is_free(node):
        return method.file.value_of(node.id) or node
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return node
    around = method.file.parents.get(method.node)
    holder = method.file.block(node.value.id) if method.is_free(node.value) else around
    for statement in holder.body if isinstance(holder, ast.ClassDef) else ():
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == node.attr for t in targets):
            return getattr(statement, "value", None) or node
    return node


def made_of(
    method: Method, start: Iterable[ast.AST | None], into: Callable[[ast.AST], Iterable[ast.AST | None]] | None = None
) -> Iterator[ast.AST]:
    """Every expression that these are made of, names followed back, each of them once.

    `into` says what an expression is made of, where not everything in it counts.
    """
    seen: set[ast.AST] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += into(node) if into is not None else all_of(method, node)


def all_of(method: Method, node: ast.AST) -> Iterator[ast.AST | None]:
    """What stands in an expression, and what the names in it were assigned."""
    yield from ast.iter_child_nodes(node)
    if isinstance(node, ast.Name):
        yield from (binding.value for binding in method.definitions(node))


def body_called(method: Method, func: ast.expr, owner: ast.AST | None = None) -> ast.FunctionDef | None:
    """The function that is called, where it stands in this file: nested, at the top, or beside the method in its class.

    `owner` is the class whose `cls` and `self` the method has, where that is known.
    """
    if isinstance(func, ast.Name):
        local = method.definitions(func)
        if local:
            found = local[0].node if len(local) == 1 and local[0].how == "def" else None
            return found if isinstance(found, ast.FunctionDef) else None
        return None if func.id in method.file.imports.names else method.file.function_named(func.id)
    around = owner or method.file.parents.get(method.node)
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and isinstance(around, ast.ClassDef)):
        return None
    names = (around.name, "cls", "self") if owner is not None else (around.name,)
    own = around.body if func.value.id in names else ()
    found = next((n for n in own if isinstance(n, ast.FunctionDef) and n.name == func.attr), None)
    static = found is not None and any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in found.decorator_list)
    return found if static or owner is not None else None


# Take sizes alone: `torch.rand(lengths.sum(), device=x.device)` has as many elements as a value says, and none of its numbers.
_SIZED = frozenset(("zeros", "ones", "empty", "rand", "randn"))


def is_free_of_inputs(method: Method, node: ast.expr) -> bool:
    """Whether no value of an input gets into this expression: nothing but sizes, dtypes and devices of them.

    Whatever a name on the way is used for elsewhere may fill it (a kernel, `out=`), so that then nobody knows.
    """
    waiting: list[ast.AST] = [node]
    followed: set[ast.AST] = set()
    while waiting:
        part = waiting.pop()
        if part in followed:
            continue
        followed.add(part)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            bindings = method.definitions(part)
            if any(b.how not in ("assign", "unpack") or b.value is None for b in bindings):
                return False
            waiting += [b.value for b in bindings if b.value is not None]
        elif not _is_measure(part) and not (isinstance(part, ast.Call) and method.op(part) in _SIZED):
            waiting += ast.iter_child_nodes(part)
    names = {n.id for n in followed if isinstance(n, ast.Name) and method.definitions(n)}
    return not any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names and n not in followed
        for n in method.nodes
        if not _is_kept(method, n)
    )


def _is_kept(method: Method, node: ast.AST) -> bool:
    """Returned, or handed to ctx: `ctx.save_for_backward(y)` writes nothing into y."""
    parent = method.file.parents.get(node)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        return node in parent.args and method.context.is_ctx(parent.func.value)
    return isinstance(parent, ast.Return)


def _is_measure(node: ast.AST) -> bool:
    """`x.shape`, `x.device`, `x.size(0)`: known of a tensor without looking into it."""
    if isinstance(node, ast.Call):
        node = node.func
        return isinstance(node, ast.Attribute) and node.attr in know.TO_SHAPE | know.TO_INT | know.TO_FLAG
    return isinstance(node, ast.Attribute) and node.attr in know.MEASURED

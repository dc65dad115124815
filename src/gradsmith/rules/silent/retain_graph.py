"""backward is called twice on one graph

What it finds
-------------
Two statements `loss.backward()` on the same name in one block, without `retain_graph=True` on the first and without a new
value in between; and two losses of one block that were computed from the same intermediate result.

Why it matters
--------------
The first call frees what the graph saved; the second raises "Trying to backward through the graph a second time".

Known problems
--------------
Only plain code is seen: one block, and for two losses a chain of torch operations. If nothing in the shared part requires grad,
the second call does not raise.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
Measured on torch 2.13: RuntimeError as quoted, also for `(x * 2).sum()`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS228"
SEVERITY = "error"
EXPLAINS = ("forward-raised",)
TRIGGERS = (".backward(",)
BAD = """
import torch


def step(x):
    loss = x.square().sum()
    loss.backward()
    first = x.grad.clone()
    loss.backward()
    return first


gradsmith_inputs = {"step": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


def step(x):
    return x.square().sum()


gradsmith_inputs = {"step": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


_CALL = re.compile(r"([ \t]*)(\w+)\.backward\(")


def lint_file(file: FileModel) -> Iterator[Finding]:
    blocks = (file.function_at(line) for line in _again(file))
    for block in dict.fromkeys(block for block in blocks if block is not None):
        for node in _statements(block):
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and len(statements) > 1:
                    yield from _in_block(file, block, statements)


def _statements(block: ast.stmt) -> Iterator[ast.AST]:
    """A statement and those inside it; expressions are not looked into."""
    stack: list[ast.AST] = [block]
    while stack:
        node = stack.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            stack.extend(inner if isinstance(inner, list) else ())


def _again(file: FileModel) -> Iterator[int]:
    """Lines that call backward on a name once more in the same block, by the look of the text: parsing is what costs."""
    last: dict[str, int] = {}
    number, counted = 1, 0
    latest: tuple[str, int] = ("", -9)
    for found in re.finditer(r"\.backward\(", file.text):
        call = _CALL.match(file.text, file.text.rfind("\n", 0, found.start()) + 1)
        if call is None:
            continue
        number += file.text.count("\n", counted, found.start())
        counted = found.start()
        before = last.get(call[0])
        last[call[0]] = number
        near, latest = latest[0] == call[1] and number - latest[1] <= 3, (call[1], number)
        if before is None:
            if near:
                yield number
            continue
        between = file.lines[before : number - 1]
        left = any(text.strip() and not text.startswith(call[1]) for text in between)
        assigned = re.compile(rf"\b{call[2]}\b\s*[,=:]")
        if not left and not any(assigned.search(text) for text in between):
            yield number


def _in_block(file: FileModel, block: ast.stmt, statements: Sequence[ast.stmt]) -> Iterator[Finding]:
    freed: dict[str, ast.stmt] = {}
    for statement in statements:
        call = _backward(statement)
        if call is None:
            for node in nodes_under(statement) if freed else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                    freed.pop(node.id, None)
                elif isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                    freed.clear()
            continue
        name = call.func.value.id  # type: ignore[attr-defined]
        if name in freed and _is_tensor(file, block, name):
            yield file.at(
                statement,
                f"'{name}.backward()' is called again after line {freed[name].lineno} freed its graph: PyTorch raises.",
                advice=f"Delete this call, or compute '{name}' again before it. With `{name}.backward(retain_graph=True)` the first time, "
                "this call adds its gradients to those in .grad.",
                argument=name,
                function=getattr(block, "name", None),
            )
            freed.pop(name)
            continue
        for other in freed:
            shared = _shared(file, statements, other, name)
            if shared is not None:
                yield file.at(
                    statement,
                    f"'{name}' and '{other}' both come from '{shared}', whose graph line {freed[other].lineno} frees: PyTorch "
                    "raises here.",
                    advice=f"Call backward once, on the sum `{other} + {name}`, or write `{other}.backward(retain_graph=True)`.",
                    argument=name,
                    function=getattr(block, "name", None),
                    severity="warning",
                )
                break
        if not _keeps(call):
            freed[name] = statement


def _shared(file: FileModel, statements: Sequence[ast.stmt], first: str, second: str) -> str | None:
    """A value of this block that both losses are computed from, and whose own computation saves something."""
    made: dict[str, ast.expr] = {}
    for statement in statements:
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            name = statement.targets[0].id
            if name in made:
                return None  # assigned twice: which one is meant depends on the order
            made[name] = statement.value

    def behind(name: str) -> list[str]:
        found: dict[str, None] = {}
        stack = [name]
        while stack:
            value = made.get(stack.pop())
            for node in nodes_under(value) if value is not None else ():
                if isinstance(node, ast.Name) and node.id not in found and not _is_cut(file, value, node):
                    found[node.id] = None
                    stack.append(node.id)
        return list(found)

    if first not in made or second not in made:
        return None
    common = [name for name in behind(first) if name in behind(second)]
    return next((name for name in common if name in made and _saves(file, made[name])), None)


def _is_cut(file: FileModel, root: ast.AST | None, name: ast.Name) -> bool:
    """`hidden.detach()`, `hidden.shape`: no graph goes through there."""
    parent = file.parents.get(name)
    if isinstance(parent, ast.Attribute):
        return parent.attr in know.OUT_OF_THE_GRAPH
    # What happens in somebody else's function is not known.
    return isinstance(parent, ast.Call) and know.bare_op(file.dotted(parent.func)) is None


def _saves(file: FileModel, value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.MatMult)
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    dotted = file.dotted(value.func)
    return (know.bare_op(dotted) or value.func.attr) in know.SAVES


def _backward(statement: ast.stmt) -> ast.Call | None:
    """`loss.backward(...)` as a statement of its own."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward"):
        return None
    return call if isinstance(call.func.value, ast.Name) else None


def _keeps(call: ast.Call) -> bool:
    if len(call.args) > 1:
        return True
    for keyword in call.keywords:
        if keyword.arg in ("retain_graph", "create_graph", None):
            value = keyword.value
            if not (isinstance(value, ast.Constant) and not value.value):
                return True
    return False


def _is_tensor(file: FileModel, block: ast.stmt, name: str) -> bool:
    """Assigned a torch expression somewhere in the block: other things have a method `backward` too."""
    for node in nodes_under(block):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            for part in nodes_under(node.value):
                func = part.func if isinstance(part, ast.Call) else None
                if isinstance(func, ast.Attribute) and (
                    func.attr in know.METHODS or know.bare_op(file.dotted(func)) is not None
                ):
                    return True
    return False

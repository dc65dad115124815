"""What a method does with its ctx: saves, unpacks, marks, attributes, needs_input_grad."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradsmith.source.method import Method

SAVED = frozenset(("saved_tensors", "saved_variables", "saved_for_forward"))
MARKS = frozenset(("mark_dirty", "mark_non_differentiable", "set_materialize_grads", "mark_shared_storage"))
# Attributes that PyTorch owns; whatever else is written to ctx is the author's.
OWN = frozenset(("needs_input_grad", "materialize_grads", "non_differentiable", "dirty_tensors", "to_save", "name"))


class Save(NamedTuple):
    """A call of `save_for_backward` (or `save_for_forward`). `exprs` are its plain arguments, in order."""

    method: Method
    node: ast.Call
    exprs: list[ast.expr]
    starred: bool
    name: str = "save_for_backward"


class Unpack(NamedTuple):
    """A read of `ctx.saved_tensors`.

    `targets` are the names it is unpacked into (None where a target is no plain name), or None when it is not
    unpacked; `position` is the constant it is indexed with, for `ctx.saved_tensors[1]`.
    """

    method: Method
    node: ast.expr
    targets: list[ast.Name | None] | None
    starred: bool
    position: int | None = None

    @property
    def exact(self) -> bool:
        """The number of targets says how many tensors there must be."""
        return self.targets is not None and not self.starred


class Mark(NamedTuple):
    """`mark_dirty(...)`, `mark_non_differentiable(...)` or `set_materialize_grads(...)`."""

    method: Method
    node: ast.Call
    name: str
    exprs: list[ast.expr]
    starred: bool


class AttributeWrite(NamedTuple):
    """`ctx.attr = value`; `value` is None where it is not plain (unpacking, augmented, deleted)."""

    method: Method
    node: ast.Attribute
    attr: str
    value: ast.expr | None
    statement: ast.stmt


class AttributeRead(NamedTuple):
    """`ctx.attr`, read; also `getattr(ctx, "attr")`."""

    method: Method
    node: ast.expr
    attr: str


@dataclass(eq=False)
class ContextUse:
    """Everything one method does with its ctx. `escapes` lists uses of the bare ctx, as in `helper(ctx, x)`: what
    happens there is not seen, so rules that count saves should hold their tongue."""

    method: Method
    saves: list[Save] = field(default_factory=list)
    unpacks: list[Unpack] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    writes: list[AttributeWrite] = field(default_factory=list)
    reads: list[AttributeRead] = field(default_factory=list)
    needs: list[ast.Attribute] = field(default_factory=list)
    escapes: list[ast.Name] = field(default_factory=list)

    def is_ctx(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.method.ctx and self.method.ctx is not None

    def is_saved_tensors(self, node: ast.expr) -> bool:
        """`ctx.saved_tensors`, or a name that holds it."""
        node = self.method.resolve(node)
        return isinstance(node, ast.Attribute) and node.attr in SAVED and self.is_ctx(node.value)

    def is_needs(self, node: ast.expr) -> bool:
        """`ctx.needs_input_grad`, or a name that holds it."""
        node = self.method.resolve(node)
        return isinstance(node, ast.Attribute) and node.attr == "needs_input_grad" and self.is_ctx(node.value)


def read_context(method: Method) -> ContextUse:
    found = ContextUse(method)
    if method.ctx is None:
        return found
    for node in method.of(ast.Name):
        if node.id != method.ctx:
            continue
        parent = method.file.parents.get(node)
        if isinstance(parent, ast.Attribute):
            _attribute(found, parent)
        elif not _by_name(found, node, parent):
            found.escapes.append(node)
    return found


def _attribute(found: ContextUse, node: ast.Attribute) -> None:
    parents = found.method.file.parents
    parent = parents.get(node)
    called = isinstance(parent, ast.Call) and parent.func is node
    if node.attr in SAVED:
        _unpack(found, node)
    elif node.attr == "needs_input_grad":
        found.needs.append(node)
    elif called and isinstance(parent, ast.Call) and node.attr in ("save_for_backward", "save_for_forward"):
        plain = [a for a in parent.args if not isinstance(a, ast.Starred)]
        found.saves.append(Save(found.method, parent, plain, len(plain) != len(parent.args), node.attr))
    elif called and isinstance(parent, ast.Call) and node.attr in MARKS:
        plain = [a for a in parent.args if not isinstance(a, ast.Starred)]
        found.marks.append(Mark(found.method, parent, node.attr, plain, len(plain) != len(parent.args)))
    elif isinstance(node.ctx, ast.Load):
        if not called or node.attr not in ("register_hook", "register_prehook"):
            found.reads.append(AttributeRead(found.method, node, node.attr))
    else:
        statement = found.method.statement(node)
        found.writes.append(AttributeWrite(found.method, node, node.attr, _written(node, statement), statement))


def _written(node: ast.Attribute, statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.AnnAssign):
        return statement.value
    if not isinstance(statement, ast.Assign):
        return None
    for target in statement.targets:
        if target is node:
            return statement.value
        targets = target.elts if isinstance(target, ast.Tuple) else []
        values = statement.value.elts if isinstance(statement.value, ast.Tuple) else []
        if node in targets and len(targets) == len(values):
            return values[targets.index(node)]
    return None


def _by_name(found: ContextUse, node: ast.Name, parent: ast.AST | None) -> bool:
    """`getattr(ctx, "x")` and `hasattr(ctx, "x")` read an attribute."""
    if not (isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.args[:1] == [node]):
        return False
    if parent.func.id in ("getattr", "hasattr") and len(parent.args) > 1 and isinstance(parent.args[1], ast.Constant):
        found.reads.append(AttributeRead(found.method, parent, str(parent.args[1].value)))
        return True
    return parent.func.id in ("isinstance", "type", "id")


def _unpack(found: ContextUse, node: ast.Attribute) -> None:
    parent = found.method.file.parents.get(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        index = parent.slice.value if isinstance(parent.slice, ast.Constant) else None
        found.unpacks.append(Unpack(found.method, node, None, False, index if isinstance(index, int) else None))
        return
    targets: list[ast.Name | None] | None = None
    starred = False
    if isinstance(parent, ast.Assign) and parent.value is node:
        for target in parent.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                starred = any(isinstance(t, ast.Starred) for t in target.elts)
                targets = [t if isinstance(t, ast.Name) else None for t in target.elts]
    found.unpacks.append(Unpack(found.method, node, targets, starred))

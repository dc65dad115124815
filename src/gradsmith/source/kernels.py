"""Triton kernels in a source text: what they load and store, under which masks, and the grids they are launched with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

_REDUCTIONS = frozenset(
    ("sum", "max", "min", "dot", "cumsum", "cumprod", "reduce", "associative_scan", "argmax", "argmin", "xor_sum")
)


@dataclass(frozen=True)
class Access:
    """A `tl.load`, `tl.store` or atomic."""

    node: ast.Call
    kind: str

    @property
    def pointer(self) -> ast.expr | None:
        return _argument(self.node, 0, "pointer")

    @property
    def value(self) -> ast.expr | None:
        return _argument(self.node, 1, "value" if self.kind == "store" else "val")

    @property
    def mask(self) -> ast.expr | None:
        return _argument(self.node, 1 if self.kind == "load" else 2, "mask")

    @property
    def other(self) -> ast.expr | None:
        return _argument(self.node, 2, "other")


@dataclass(frozen=True)
class Kernel:
    """A function decorated with `@triton.jit`."""

    node: ast.FunctionDef

    @cached_property
    def accesses(self) -> list[Access]:
        kinds = {"load", "store"}
        calls = [n for n in ast.walk(self.node) if isinstance(n, ast.Call)]
        return [Access(n, _called(n)) for n in calls if _called(n) in kinds or _called(n).startswith("atomic_")]

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Every expression that a name may stand for."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.node):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for name in _names_of(target):
                        found.setdefault(name, []).append(node.value)
            elif isinstance(node, ast.For):
                for name in _names_of(node.target):
                    found.setdefault(name, []).append(node.iter)
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and isinstance(node.target, ast.Name) and node.value:
                found.setdefault(node.target.id, []).append(node.value)
        return found

    def leads_to(self, expression: ast.AST | None, called: str) -> set[str]:
        """The names behind an expression, where following them ends in a call of `tl.<called>`; "" is the expression itself."""
        if expression is None:
            return set()
        found = {""} if _calls(expression, called) else set()
        for name in self.names_behind(expression):
            if any(_calls(value, called) for value in self.assigned.get(name, ())):
                found.add(name)
        return found

    def names_behind(self, expression: ast.AST) -> set[str]:
        """Names in an expression, and those in what they were assigned."""
        seen: set[str] = set()
        waiting = [n.id for n in ast.walk(expression) if isinstance(n, ast.Name)]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [n.id for v in self.assigned.get(name, ()) for n in ast.walk(v) if isinstance(n, ast.Name)]
        return seen

    def offsets(self, pointer: ast.expr | None) -> frozenset[str]:
        """What is added to the tensor's own pointer, term by term, as text; names that are assigned once are written out."""
        parameters = {a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs)}
        terms = [] if pointer is None else self._terms(pointer, 10)
        return frozenset(ast.unparse(t) for t in terms if not (isinstance(t, ast.Name) and t.id in parameters))

    def _terms(self, node: ast.expr, depth: int) -> list[ast.expr]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [*self._terms(node.left, depth), *self._terms(node.right, depth)]
        values = self.assigned.get(node.id, ()) if isinstance(node, ast.Name) and depth else ()
        return self._terms(values[0], depth - 1) if len(values) == 1 else [node]

    def axes(self, expression: ast.AST | None) -> set[str]:
        """The axes of the grid on which an expression depends, as they are written."""
        if expression is None:
            return set()
        parts = [expression, *(v for name in self.names_behind(expression) for v in self.assigned.get(name, ()))]
        calls = [n for p in parts for n in ast.walk(p) if isinstance(n, ast.Call) and _called(n) == "program_id"]
        return {ast.unparse(a) for n in calls if (a := _argument(n, 0, "axis")) is not None}

    @cached_property
    def all_axes(self) -> set[str]:
        return self.axes(self.node)

    def reaches_reduction(self, load: Access) -> str:
        """The reduction into which the value of a load runs, without a `tl.where` on the way; "" if there is none."""
        holders = {name for name, values in self.assigned.items() if any(_holds(v, load.node) for v in values)}
        grown = True
        while grown:
            carried = {n for n, values in self.assigned.items() if any(_uses(v, holders) for v in values)}
            grown = not carried <= holders
            holders |= carried
        for node in ast.walk(self.node):
            if isinstance(node, ast.Call) and _called(node) in _REDUCTIONS:
                arguments = [*node.args, *(k.value for k in node.keywords)]
                if any(_holds(a, load.node) or _uses(a, holders) for a in arguments):
                    return _called(node)
        return ""


@dataclass(frozen=True)
class Launch:
    """`kernel[grid](...)`, with the grid as far as it is written in the same function."""

    node: ast.Call
    grid: ast.expr

    @property
    def kernel(self) -> str:
        assert isinstance(self.node.func, ast.Subscript)
        return ast.unparse(self.node.func.value)

    def floored(self) -> Iterator[ast.BinOp]:
        """Floor divisions by a block in the grid that leave out a block which is only begun."""
        blocks = {ast.dump(k.value) for k in self.node.keywords if k.arg is not None and k.arg.isupper()}
        for node in ast.walk(self.grid):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
                continue
            divisor = ast.dump(node.right)
            of_meta = isinstance(node.right, ast.Subscript) and isinstance(self.grid, ast.Lambda)
            rounded = any(ast.dump(n) == divisor for n in ast.walk(node.left)) or isinstance(node.left, ast.UnaryOp)
            if (divisor in blocks or of_meta) and not rounded:
                yield node


def kernels(file: FileModel) -> list[Kernel]:
    """The kernels of a file, from the top."""
    found = [n for n in ast.walk(file.tree) if isinstance(n, ast.FunctionDef)]
    return [Kernel(n) for n in found if any(_is_jit(d) for d in n.decorator_list)]


def launches(file: FileModel) -> Iterator[Launch]:
    """The launches of a file whose grid is known."""
    for function in ast.walk(file.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        inside = list(ast.walk(function))
        assigned = [n for n in inside if isinstance(n, ast.Assign) and len(n.targets) == 1]
        values = {n.targets[0].id: n.value for n in assigned if isinstance(n.targets[0], ast.Name)}
        for node in inside:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                grid = node.func.slice
                known = values.get(grid.id) if isinstance(grid, ast.Name) else grid
                if isinstance(known, (ast.Tuple, ast.Lambda)):
                    yield Launch(node, known)


def _is_jit(decorator: ast.expr) -> bool:
    written = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(written) in ("triton.jit", "jit")


def _called(node: ast.Call) -> str:
    """The name of a function of the language: `tl.sum` and `triton.language.sum` are sum."""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, (ast.Name, ast.Attribute)):
        return node.func.attr if ast.unparse(node.func.value) in ("tl", "triton.language", "tl.math") else ""
    return ""


def _calls(expression: ast.AST, called: str) -> bool:
    return any(isinstance(n, ast.Call) and _called(n) == called for n in ast.walk(expression))


def _argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(node.args) > position:
        return node.args[position]
    return next((k.value for k in node.keywords if k.arg == name), None)


def _names_of(target: ast.expr) -> Iterator[str]:
    return (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _parts(expression: ast.AST) -> Iterator[ast.AST]:
    """An expression and its parts, except what `tl.where` chooses from, and addresses."""
    yield expression
    if isinstance(expression, ast.Call) and _called(expression) in ("where", "load"):
        return
    for part in ast.iter_child_nodes(expression):
        yield from _parts(part)


def _holds(expression: ast.AST, load: ast.Call) -> bool:
    return any(part is load for part in _parts(expression))


def _uses(expression: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in _parts(expression))

"""Triton kernels in a source text: what they load and store, under which masks, and the grids they are launched with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gradsmith.source.flow import Flow

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel


@dataclass(frozen=True)
class Access:
    """A `tl.load`, `tl.store` or atomic."""

    node: ast.Call
    kind: str

    @property
    def pointer(self) -> ast.expr | None:
        return argument(self.node, 0, "pointer")

    @property
    def value(self) -> ast.expr | None:
        return argument(self.node, 1, "value" if self.kind == "store" else "val")

    @property
    def mask(self) -> ast.expr | None:
        return argument(self.node, 1 if self.kind == "load" else 2, "mask")

    @property
    def other(self) -> ast.expr | None:
        return argument(self.node, 2, "other")


@dataclass(frozen=True)
class Kernel:
    """A function decorated with `@triton.jit`."""

    node: ast.FunctionDef

    @cached_property
    def accesses(self) -> list[Access]:
        kinds = {"load", "store"}
        return [Access(n, called(n)) for n in self.calls if called(n) in kinds or called(n).startswith("atomic_")]

    @property
    def has_lock(self) -> bool:
        """Whether programs wait for each other: then the order in which they touch an element is their own business."""
        return any(a.kind in ("atomic_cas", "atomic_xchg") for a in self.accesses)

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

    def leads_to(self, expression: ast.AST | None, function: str) -> set[str]:
        """The names behind an expression, where following them ends in a call of `tl.<function>`; "" is the expression itself."""
        if expression is None:
            return set()
        found = {""} if _calls(expression, function) else set()
        for name in self.names_behind(expression):
            if any(_calls(value, function) for value in self.assigned.get(name, ())):
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
        calls = [n for p in parts for n in ast.walk(p) if isinstance(n, ast.Call) and called(n) == "program_id"]
        return {ast.unparse(a) for n in calls if (a := argument(n, 0, "axis")) is not None}

    @cached_property
    def all_axes(self) -> set[str]:
        return self.axes(self.node)

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [n for n in ast.walk(self.node) if isinstance(n, ast.Call)]

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.node)

    def values(self, name: ast.Name) -> list[ast.expr]:
        """What a name may hold where it is read; nothing for parameters and names of the module."""
        waiting, found = [*self.flow.at.get(name, ())], []
        seen = set(waiting)
        while waiting:
            binding = waiting.pop()
            found += [binding.value] if binding.value is not None else []
            waiting += [b for b in binding.previous if b not in seen]
            seen.update(binding.previous)
        return found


@dataclass(frozen=True)
class Launch:
    """`kernel[grid](...)`, with the grid as far as it is written in the same function."""

    node: ast.Call
    grid: ast.expr
    exact: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a size and a block of which the function says that the block divides the size, or it raises."""

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
            divides = (ast.dump(node.left), divisor) in self.exact
            if (divisor in blocks or of_meta) and not rounded and not divides:
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
        exact = frozenset(_held_to_divide(inside))
        for node in inside:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                grid = node.func.slice
                known = values.get(grid.id) if isinstance(grid, ast.Name) else grid
                if isinstance(known, (ast.Tuple, ast.Lambda)):
                    yield Launch(node, known, exact)


def _held_to_divide(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """`assert n % BLOCK == 0`, `if n % BLOCK: raise ...`."""
    for node in nodes:
        held = isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body)
        )
        for part in ast.walk(node.test) if held else ():  # type: ignore[attr-defined]
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                yield ast.dump(part.left), ast.dump(part.right)


def _is_jit(decorator: ast.expr) -> bool:
    written = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(written) in ("triton.jit", "jit")


def called(node: ast.Call) -> str:
    """The name of a function of the language: `tl.sum` and `triton.language.sum` are sum."""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, (ast.Name, ast.Attribute)):
        return node.func.attr if ast.unparse(node.func.value) in ("tl", "triton.language", "tl.math") else ""
    return ""


def _calls(expression: ast.AST, function: str) -> bool:
    return any(isinstance(n, ast.Call) and called(n) == function for n in ast.walk(expression))


def argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(node.args) > position:
        return node.args[position]
    return next((k.value for k in node.keywords if k.arg == name), None)


def _names_of(target: ast.expr) -> Iterator[str]:
    return (n.id for n in ast.walk(target) if isinstance(n, ast.Name))

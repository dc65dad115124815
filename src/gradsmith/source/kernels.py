"""Triton kernels in a source text: what they load and store, under which masks, and the grids they are launched with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gradsmith.source.flow import Flow
from gradsmith.source.walk import nodes_under, once

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel


_JIT = re.compile(r"^[ \t]*@(?:triton\.)?jit\b(?!\.)", re.M)


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
        given = argument(self.node, 1 if self.kind == "load" else 2, "mask")
        return None if isinstance(given, ast.Constant) and given.value is None else given

    @property
    def other(self) -> ast.expr | None:
        return argument(self.node, 2, "other")


@dataclass(frozen=True)
class Kernel:
    """A function decorated with `@triton.jit`."""

    node: ast.FunctionDef

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return nodes_under(self.node)

    @cached_property
    def parameters(self) -> list[str]:
        return [a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs)]

    @cached_property
    def accesses(self) -> list[Access]:
        kinds = {"load", "store"}
        return [Access(n, called(n)) for n in self.calls if called(n) in kinds or called(n).startswith("atomic_")]

    @property
    def checks_boundaries(self) -> bool:
        """Whether accesses through block pointers ask for a mask."""
        return any(k.arg == "boundary_check" for a in self.accesses for k in a.node.keywords)

    @property
    def has_lock(self) -> bool:
        """Whether programs wait for each other: then the order in which they touch an element is their own business."""
        return any(a.kind in ("atomic_cas", "atomic_xchg") for a in self.accesses)

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Every expression that a name may stand for."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
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
        waiting = [n.id for n in nodes_under(expression) if isinstance(n, ast.Name)]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [
                    n.id for v in self.assigned.get(name, ()) for n in nodes_under(v) if isinstance(n, ast.Name)
                ]
        return seen

    def offsets(self, pointer: ast.expr | None) -> frozenset[str]:
        """What is added to the tensor's own pointer, term by term, as text; names that are assigned once are written out."""
        terms = [] if pointer is None else self._terms(pointer, 10)
        return frozenset(ast.unparse(t) for t in terms if not (isinstance(t, ast.Name) and t.id in self.parameters))

    def base(self, pointer: ast.expr | None) -> str | None:
        """The parameter that a pointer starts from; None for memory that the kernel made itself, or got from elsewhere."""
        terms = [] if pointer is None else self._terms(pointer, 10)
        return next((t.id for t in terms if isinstance(t, ast.Name) and t.id in self.parameters), None)

    def names_in(self, pointer: ast.expr | None) -> list[ast.Name]:
        """The names that a pointer is made of, where those that are assigned once are written out."""
        terms = [] if pointer is None else self._terms(pointer, 10)
        return [n for t in terms for n in nodes_under(t) if isinstance(n, ast.Name)]

    def _terms(self, node: ast.expr, depth: int) -> list[ast.expr]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [*self._terms(node.left, depth), *self._terms(node.right, depth)]
        values = self.assigned.get(node.id, ()) if isinstance(node, ast.Name) and depth else ()
        return self._terms(values[0], depth - 1) if len(values) == 1 else [node]

    def conditions(self, node: ast.expr) -> list[ast.expr]:
        """The tests that decide whether a node runs at all: of an `if` around it, and of one before it that returns."""
        branches = [n for n in self.nodes if isinstance(n, ast.If)]
        around = [n for n in branches if any(node is inner for inner in nodes_under(n))]
        left = [
            n for n in branches if n not in around and n.lineno < node.lineno and isinstance(n.body[-1], ast.Return)
        ]
        return [n.test for n in (*around, *left)]

    def excludes(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether only one of two places runs, because of a test: `if EVEN: ...` and, here or further down, its `else`."""
        sides = self._sides(other)
        return any((test, not holds) in sides for test, holds in self._sides(one))

    def _sides(self, node: ast.AST) -> set[tuple[str, bool]]:
        """The tests around a node, of names that do not change, and whether it runs where they hold."""
        found = set()
        for branch in (n for n in self.nodes if isinstance(n, ast.If)):
            names = [n.id for n in nodes_under(branch.test) if isinstance(n, ast.Name)]
            if all(len(self.assigned.get(name, ())) <= 1 for name in names):
                for holds, block in ((True, branch.body), (False, branch.orelse)):
                    if any(node is inner for statement in block for inner in nodes_under(statement)):
                        found.add((ast.dump(branch.test), holds))
        return found

    def leaves_out(self, mask: ast.expr | None) -> bool:
        """Whether a mask may leave out a lane: `tl.arange(0, N) < N` does not."""
        waiting, seen = [mask] if mask is not None else [], set[ast.expr]()
        while waiting:
            part = self._written_out(waiting.pop())
            if part in seen or not isinstance(part, (ast.BinOp, ast.Compare)):
                return True
            seen.add(part)
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitAnd):
                waiting += [part.left, part.right]
            elif not self._is_whole(part):
                return True
        return False

    def _is_whole(self, part: ast.expr) -> bool:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.ops[0], ast.Lt):
            return False
        offsets = self._written_out(part.left)
        end = argument(offsets, 1, "end") if isinstance(offsets, ast.Call) and called(offsets) == "arange" else None
        return end is not None and ast.dump(end) == ast.dump(part.comparators[0])

    def _written_out(self, node: ast.expr) -> ast.expr:
        """`i < n` of `mask[:, None]`, where `mask` is assigned once."""
        for _ in range(10):
            values = self.values(node) if isinstance(node, ast.Name) else []
            inner = values[0] if len(values) == 1 else node.value if isinstance(node, ast.Subscript) else None
            if inner is None:
                break
            node = inner
        return node

    def axes(self, expression: ast.AST | None) -> set[str]:
        """The axes of the grid on which an expression depends, as they are written."""
        if expression is None:
            return set()
        parts = [expression, *(v for name in self.names_behind(expression) for v in self.assigned.get(name, ()))]
        calls = [n for p in parts for n in nodes_under(p) if isinstance(n, ast.Call) and called(n) == "program_id"]
        return {ast.unparse(a) for n in calls if (a := argument(n, 0, "axis")) is not None}

    @cached_property
    def all_axes(self) -> set[str]:
        return self.axes(self.node)

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [n for n in self.nodes if isinstance(n, ast.Call)]

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
    grid: ast.Tuple | ast.Lambda
    exact: frozenset[tuple[str, str]]
    """Pairs of a size and a block of which the function says that the block divides the size, or it raises."""
    values: dict[str, ast.expr]
    """What the names of the function stand for, where they are assigned once."""

    @property
    def kernel(self) -> str:
        assert isinstance(self.node.func, ast.Subscript)
        return ast.unparse(self.node.func.value)

    def floored(self, kernel: Kernel) -> Iterator[ast.BinOp]:
        """Floor divisions in the grid that leave out a block which is only begun, although the kernel masks such a block."""
        blocks = {ast.dump(k.value) for k in self.node.keywords if k.arg is not None and k.arg.isupper()}
        written = self.grid.body if isinstance(self.grid, ast.Lambda) else self.grid
        for axis, extent in enumerate(written.elts if isinstance(written, ast.Tuple) else ()):
            for node in nodes_under(extent):
                if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
                    continue
                of_meta = isinstance(node.right, ast.Subscript) and isinstance(self.grid, ast.Lambda)
                by_block = ast.dump(node.right) in blocks or of_meta
                if by_block and not self._covers(node, extent) and self._is_masked(kernel, str(axis), node.left):
                    yield node

    def _covers(self, division: ast.BinOp, extent: ast.expr) -> bool:
        """The size is rounded up to whole blocks, or said to consist of them, or one program is added."""
        divisor = ast.dump(division.right)
        size = self._resolved(division.left)
        if (ast.dump(division.left), divisor) in self.exact or isinstance(size, ast.UnaryOp):
            return True
        if any(ast.dump(n) == divisor for n in nodes_under(size)) or _is_one_less(size, division.right):
            return True
        added = (n for n in nodes_under(extent) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add))
        # `cdiv(n // rounds, block)`: what is divided twice is rounded up to whole blocks in the end.
        rounded = (n.args[0] for n in nodes_under(extent) if isinstance(n, ast.Call) and n.args and _is_cdiv(n))
        return any(division in (n.left, n.right) for n in added) or any(division in nodes_under(n) for n in rounded)

    def _is_masked(self, kernel: Kernel, axis: str, size: ast.expr) -> bool:
        """Whether the kernel compares offsets along this axis of its grid with the very size that the grid divides."""
        given = dict(zip(kernel.parameters, self.node.args))
        given |= {k.arg: k.value for k in self.node.keywords if k.arg is not None}
        wanted = {ast.dump(size), ast.dump(self._resolved(size))}
        sizes = {n for n, v in given.items() if not wanted.isdisjoint((ast.dump(v), ast.dump(self._resolved(v))))}
        for node in kernel.nodes:
            if isinstance(node, ast.Call) and kernel.checks_boundaries and called(node) == "make_block_ptr":
                shape = argument(node, 1, "shape")
                bounds = {n.id for n in nodes_under(shape) if isinstance(n, ast.Name)} if shape is not None else set()
                if not bounds.isdisjoint(sizes) and axis in kernel.axes(argument(node, 3, "offsets")):
                    return True
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.Gt)):
                sides = (node.left, node.comparators[0])
                offsets, bound = sides if isinstance(node.ops[0], ast.Lt) else sides[::-1]
                if isinstance(bound, ast.Name) and bound.id in sizes and axis in kernel.axes(offsets):
                    return True
        return False

    def _resolved(self, node: ast.expr) -> ast.expr:
        for _ in range(10):
            if not (isinstance(node, ast.Name) and node.id in self.values):
                break
            node = self.values[node.id]
        return node


def _is_cdiv(node: ast.Call) -> bool:
    return ast.unparse(node.func).rpartition(".")[2] in ("cdiv", "ceil_div", "next_multiple_of")


def _is_one_less(size: ast.expr, block: ast.expr) -> bool:
    """`n + 255` where the block is 256."""
    if not (isinstance(size, ast.BinOp) and isinstance(size.op, ast.Add) and isinstance(block, ast.Constant)):
        return False
    added = [n.value for n in (size.left, size.right) if isinstance(n, ast.Constant) and isinstance(n.value, int)]
    return any(number + 1 == block.value for number in added)


@once
def kernels(file: FileModel) -> list[Kernel]:
    """The kernels of a file, from the top. Each is parsed alone: they may stand in a file of thousands of lines."""
    places = [at for at in file.lines_like(_JIT, "jit") if not file.in_docstring(at)]
    found = (_function_under(file, file.line_number(at)) for at in places)
    return [Kernel(node) for node in dict.fromkeys(found) if node is not None]


def _function_under(file: FileModel, decorator: int) -> ast.FunctionDef | None:
    """The function that the decorator on this line belongs to."""
    indent = len(file.lines[decorator - 1]) - len(file.lines[decorator - 1].lstrip())
    for index in range(decorator, len(file.lines)):
        line = file.lines[index]
        if line.startswith("def ", indent) and not line[:indent].strip():
            inside = next((i for i in range(index + 1, len(file.lines)) if file.lines[i].strip()), index)
            node = file.function_at(inside + 1)
            return node if isinstance(node, ast.FunctionDef) and node.lineno == index + 1 else None
        if line.strip() and not line[: indent + 1].strip(" \t@)]}#"):
            continue  # further decorators, and what is inside their brackets
        if line.strip():
            return None
    return None


def launches(file: FileModel) -> Iterator[Launch]:
    """The launches of the file's own kernels whose grid is known."""
    names = [kernel.node.name for kernel in kernels(file)]
    places = [at for name in dict.fromkeys(names) for at in file.occurrences(f"{name}[")]
    around = (file.function_at(file.line_number(at), outermost=True) for at in sorted(places))
    for function in (n for n in dict.fromkeys(around) if isinstance(n, ast.FunctionDef)):
        inside = nodes_under(function)
        launched = [n for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript)]
        if not launched:
            continue
        values = _assigned_once(inside)
        exact = frozenset(_held_to_divide(inside))
        for node in launched:
            assert isinstance(node.func, ast.Subscript)
            grid = node.func.slice
            known = values.get(grid.id) if isinstance(grid, ast.Name) else grid
            if isinstance(known, (ast.Tuple, ast.Lambda)):
                yield Launch(node, known, exact, values)


def _assigned_once(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    found = [n for n in nodes if isinstance(n, ast.Assign) and len(n.targets) == 1]
    names = [n.targets[0].id for n in found if isinstance(n.targets[0], ast.Name)]
    values = {n.targets[0].id: n.value for n in found if isinstance(n.targets[0], ast.Name)}
    return {name: value for name, value in values.items() if names.count(name) == 1}


def _held_to_divide(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """`assert n % BLOCK == 0`, `if n % BLOCK: raise ...`."""
    for node in nodes:
        held = isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body)
        )
        for part in nodes_under(node.test) if held else ():  # type: ignore[attr-defined]
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                yield ast.dump(part.left), ast.dump(part.right)


def called(node: ast.Call) -> str:
    """The name of a function of the language: `tl.sum` and `triton.language.sum` are sum."""
    return node.func.attr if isinstance(node.func, ast.Attribute) and _is_language(node.func.value) else ""


def _is_language(node: ast.expr) -> bool:
    """`tl`, `triton.language`, `tl.math`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr) in (("triton", "language"), ("tl", "math"))
    return isinstance(node, ast.Name) and node.id == "tl"


def _calls(expression: ast.AST, function: str) -> bool:
    return any(isinstance(n, ast.Call) and called(n) == function for n in nodes_under(expression))


def argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(node.args) > position:
        return node.args[position]
    return next((k.value for k in node.keywords if k.arg == name), None)


def _names_of(target: ast.expr) -> Iterator[str]:
    return (n.id for n in nodes_under(target) if isinstance(n, ast.Name))

"""Mistakes that a script plants in the kernels of released packages: one place of the source, one kind of mistake.

`drawn` gives them in an order that a seed fixes, one kind after the other, over as many Functions as there are.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_recipes import Case

AT_THE_ACCESS = ("mask dropped", "missing atomic", "other removed")  # the mistake is in the access itself
OF_MEMORY = (*AT_THE_ACCESS, "grid short")  # others are where they change what is accessed


@dataclass(frozen=True)
class Mutant:
    case: Case
    kind: str
    path: str
    line: int
    end_line: int
    before: str
    after: str
    text: str  # of the whole file
    with_nonsense: str | None = None  # the same, where lanes that are left undefined hold some number

    def is_at(self, path: str, line: int | None) -> bool:
        """Whether a finding about memory stands where it should: at the access, or in the kernels that make the wrong ones."""
        if self.kind in AT_THE_ACCESS:
            return Path(path).name == Path(self.path).name and line is not None and self.line <= line <= self.end_line
        return bool(path) and line in (_accesses(path) | (_heads(path) if self.kind == "grid short" else frozenset()))


@functools.cache
def _heads(path: str) -> frozenset[int]:
    """The lines on which kernels begin: one without a program accesses nothing."""
    kernels = _kernels(ast.parse(Path(path).read_text(encoding="utf-8")))
    return frozenset(line for k in kernels for line in range(k.decorator_list[0].lineno, k.lineno + 1))


@functools.cache
def _accesses(path: str) -> frozenset[int]:
    """The lines of loads, stores and atomics in the kernels of a file."""
    kernels = _kernels(ast.parse(Path(path).read_text(encoding="utf-8")))
    called = [n for k in kernels for n in ast.walk(k) if isinstance(n, ast.Call)]
    touching = [n for n in called if _last(n.func) in ("load", "store") or _last(n.func).startswith("atomic_")]
    return frozenset(line for n in touching for line in range(n.lineno, (n.end_lineno or n.lineno) + 1))


def _kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    return [f for f in tree.body if isinstance(f, ast.FunctionDef) and "jit" in map(_last, f.decorator_list)]


def mistakes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Kinds of mistakes that can be made at a node, and what stands there then."""
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and called in ("tl.load", "tl.store"):
        if (bare := _without(node, "mask")) is not None:
            yield "mask dropped", _without(bare, "other") or bare
        if (bare := _without(node, "other")) is not None:
            yield "other removed", bare
    elif isinstance(node, ast.Call) and called == "tl.atomic_add" and len(node.args) > 1:
        masks = [k for k in node.keywords if k.arg == "mask"]
        yield "missing atomic", ast.Call(ast.parse("tl.store", mode="eval").body, node.args, masks)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
        yield "boundary", ast.Compare(node.left, [ast.LtE()], node.comparators)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and "stride" in ast.unparse(node.right):
        yield "stride swapped", ast.BinOp(node.left, ast.Mult(), ast.Constant(1))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and not _is_address(node):
        yield "term dropped", node.left
        yield "sign", ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)


def _without(node: ast.Call, name: str) -> ast.Call | None:
    kept = [k for k in node.keywords if k.arg != name]
    return ast.Call(node.func, node.args, kept) if len(kept) < len(node.keywords) else None


def _with_nonsense(node: Any) -> ast.Call:
    """A load whose masked lanes hold a number that nobody would write there."""
    return ast.Call(node.func, node.args, [*node.keywords, ast.keyword("other", ast.Constant(977))])


def _is_address(node: ast.AST) -> bool:
    return "ptr" in ast.unparse(node).lower()


def mutants_of(case: Case) -> Iterator[Mutant]:
    """Every mistake that fits somewhere in the kernels of a module, and in the grids it launches them with."""
    path = str(case.home().__file__)
    text = Path(path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    kernels = _kernels(tree)
    inside = [node for kernel in kernels for statement in kernel.body for node in ast.walk(statement)]
    outside = [node for part in tree.body if part not in kernels for node in ast.walk(part)]

    def mutant(kind: str, node: Any, new: ast.AST) -> Mutant:
        whole, before = _replaced(text, node, new), ast.unparse(node)
        filled = _replaced(text, node, _with_nonsense(new)) if kind == "other removed" else None
        return Mutant(case, kind, path, node.lineno, node.end_lineno, before, ast.unparse(new), whole, filled)

    for node in inside:
        for kind, new in mistakes(node):
            yield mutant(kind, node, new)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield mutant("accumulate overwritten", node, ast.Assign([node.target], node.value, lineno=node.lineno))
    for node in outside:
        if isinstance(node, ast.Call) and _last(node.func) == "cdiv" and len(node.args) == 2:
            yield mutant("grid short", node, ast.BinOp(node.args[0], ast.FloorDiv(), node.args[1]))


def _last(node: ast.expr) -> str:
    """The last part of a dotted name, called or not."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def _replaced(text: str, node: Any, new: ast.AST) -> str:
    """The text with one node replaced; every other line keeps its number."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    first = starts[node.lineno - 1] + len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
    last = starts[node.end_lineno - 1] + len(lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode())
    written = ast.unparse(new) if isinstance(new, ast.Assign) else f"({ast.unparse(new)})"
    return text[:first] + written + "\\\n" * (node.end_lineno - node.lineno) + text[last:]


def loaded(mutant: Mutant, text: str | None = None) -> Any:
    """The module with the mistake (or another text), in place of the right one."""
    path = Path(tempfile.mkdtemp(prefix="mutant-")) / Path(mutant.path).name
    path.write_text(text or mutant.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(mutant.case.module, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[mutant.case.module] = module
    spec.loader.exec_module(module)
    return module


def drawn(every: list[Case], seed: int) -> Iterator[Mutant]:
    """All mistakes, one kind after the other, each from a Function that had few of them before."""
    chance = random.Random(seed)
    pools: dict[str, list[Mutant]] = {}
    modules: set[str] = set()
    for case in every:
        if case.module not in modules:
            modules.add(case.module)
            for mutant in mutants_of(case):
                pools.setdefault(mutant.kind, []).append(mutant)
    used: dict[str, int] = {}
    while any(pools.values()):
        for kind in sorted(pools):
            if pool := pools[kind]:
                least = min(used.get(m.case.module, 0) for m in pool)
                mutant = chance.choice([m for m in pool if used.get(m.case.module, 0) == least])
                pool.remove(mutant)
                used[mutant.case.module] = used.get(mutant.case.module, 0) + 1
                yield mutant

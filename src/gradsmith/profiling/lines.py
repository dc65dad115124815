"""Whose line is it, and which Python loops is it in? Answers from stack frames and source text."""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import torch

from gradsmith.about import FOLDER

Position = tuple[int, int]

_OURS = FOLDER
_TORCH = str(Path(torch.__file__).parent)
_MODULES = str(Path(torch.nn.modules.__file__).parent)
_LIBRARY = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_BOUNDARY = str(Path(__file__).with_name("bench.py"))


@dataclass(frozen=True)
class Loop:
    """A `for`, a `while` or a comprehension: what it runs over, and where its body is."""

    path: str
    line: int
    over: str
    start: Position
    end: Position


@dataclass(frozen=True)
class Site:
    """A place in the user's code that is on the stack while an operation runs."""

    path: str
    line: int
    function: str
    loops: tuple[Loop, ...] = ()

    @property
    def text(self) -> str:
        return linecache.getline(self.path, self.line)


@dataclass(frozen=True)
class _Scope:
    start: Position
    end: Position
    loops: tuple[Loop, ...]


def stack(home: str | None, above: int = 2) -> list[FrameType]:
    """The user's frames, innermost first, from the running operation up to where gradsmith called the subject."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(above)
    while frame is not None and frame.f_code.co_filename != _BOUNDARY:
        if is_user_file(frame.f_code.co_filename, home):
            frames.append(frame)
        frame = frame.f_back
    return frames


def built_in(home: str | None, above: int = 2) -> str:
    """The class of torch's own module that runs the operation for the user's line (`LSTMCell`), or nothing."""
    frame: FrameType | None = sys._getframe(above)
    while frame is not None and not is_user_file(frame.f_code.co_filename, home):
        if frame.f_code.co_filename.startswith(_MODULES) and frame.f_code.co_name == "forward":
            return type(frame.f_locals.get("self")).__name__
        if frame.f_code.co_filename == _BOUNDARY:
            return ""
        frame = frame.f_back
    return ""


@cache
def is_user_file(path: str, home: str | None) -> bool:
    """Code of the subject's own project: not torch, not gradsmith, not the library (unless the subject lives there)."""
    if path == home:
        return True
    if path.startswith((_TORCH, _OURS)) or (path.startswith("<") and not path.startswith("<ipython")):
        return False
    return not path.startswith(_LIBRARY)


@cache
def site(code: CodeType, instruction: int) -> Site:
    """The place of one instruction, with the loops around it in its own function."""
    positions = next(itertools.islice(_positions(code), instruction // 2, None), None)
    line = (positions[0] if positions else None) or code.co_firstlineno
    column = positions[1] if positions else None
    found = _enclosing(code.co_filename, line, column)
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return Site(code.co_filename, line, name, found)


@cache
def headers(path: str) -> frozenset[int]:
    """Lines on which an iteration of some loop begins."""
    return frozenset(loop.line for scope in _scopes(path) for loop in scope.loops)


def _positions(code: CodeType) -> itertools.chain[tuple[int | None, int | None]]:
    if hasattr(code, "co_positions"):  # Python 3.11
        return itertools.chain((p[0], p[2]) for p in code.co_positions())
    # 3.10 knows lines only: one entry per two bytes of bytecode, as co_positions gives them.
    spread = ([(line, None)] * ((end - start) // 2) for start, end, line in code.co_lines())
    return itertools.chain.from_iterable(spread)


@cache
def _enclosing(path: str, line: int, column: int | None) -> tuple[Loop, ...]:
    at = (line, column if column is not None else 10**6)
    inside = [s for s in _scopes(path) if s.start <= at <= s.end or (column is None and s.start[0] <= line <= s.end[0])]
    if not inside:
        return ()
    scope = max(inside, key=lambda s: s.start)
    hits = [
        x for x in scope.loops if (x.start <= at <= x.end if column is not None else x.start[0] <= line <= x.end[0])
    ]
    return tuple(sorted(hits, key=lambda x: x.start))


@cache
def _scopes(path: str) -> tuple[_Scope, ...]:
    text = "".join(linecache.getlines(path))
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a notebook cell with magics, or no source at all: operations then have lines but no loops
        return ()
    scopes: list[_Scope] = []

    def visit(owner: ast.AST) -> None:
        loops: list[Loop] = []
        inner: list[ast.AST] = []
        todo = list(ast.iter_child_nodes(owner))
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                inner.append(node)
                continue
            if (loop := _loop(path, node)) is not None:
                loops.append(loop)
            todo.extend(ast.iter_child_nodes(node))
        last = (getattr(owner, "end_lineno", 10**9) or 10**9, getattr(owner, "end_col_offset", 10**9) or 10**9)
        scopes.append(_Scope((getattr(owner, "lineno", 0), getattr(owner, "col_offset", 0)), last, tuple(loops)))
        for node in inner:
            visit(node)

    visit(tree)
    return tuple(scopes)


def _loop(path: str, node: ast.AST) -> Loop | None:
    if isinstance(node, (ast.For, ast.While)):
        over = ast.unparse(node.iter if isinstance(node, ast.For) else node.test)
        first, last = node.body[0], node.body[-1]
        end = (last.end_lineno or last.lineno, last.end_col_offset or 0)
        return Loop(path, node.lineno, over, (first.lineno, first.col_offset), end)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        end = (element.end_lineno or element.lineno, element.end_col_offset or 0)
        over = ast.unparse(node.generators[0].iter)
        return Loop(path, element.lineno, over, (element.lineno, element.col_offset), end)
    return None

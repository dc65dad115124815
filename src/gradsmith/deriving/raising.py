"""Tests of forward: those that only raise (an assert, an `if` whose body raises) can be kept as they are; those that end a loop."""

from __future__ import annotations

import ast
import types

from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named
from gradsmith.source.walk import once


def only_raises(frame: types.FrameType | None) -> bool:
    """Does the running line test something of which one side does nothing but raise?"""
    found = _running(frame)
    if isinstance(found, ast.If):
        return all(isinstance(s, ast.Raise) for s in found.body)
    return isinstance(found, ast.Assert)


def ends_a_loop(frame: types.FrameType | None) -> bool:
    """Does the running line test whether a `while` goes on?"""
    return isinstance(_running(frame), ast.While)


def _running(frame: types.FrameType | None) -> ast.If | ast.Assert | ast.While | None:
    """The innermost statement whose test is on the running line."""
    if frame is None:
        return None
    file = file_named(frame.f_code.co_filename)
    found: ast.If | ast.Assert | ast.While | None = None
    for statement in _tests(file) if file is not None else ():
        test: ast.expr = statement.test
        if test.lineno <= frame.f_lineno <= (test.end_lineno or test.lineno):
            found = statement  # the innermost comes last
    return found


@once
def _tests(file: FileModel) -> tuple[ast.If | ast.Assert | ast.While, ...]:
    try:
        tree = file.tree
    except SyntaxError:
        return ()
    found = [n for n in ast.walk(tree) if isinstance(n, (ast.If, ast.Assert, ast.While))]
    return tuple(sorted(found, key=lambda n: (n.lineno, n.col_offset)))

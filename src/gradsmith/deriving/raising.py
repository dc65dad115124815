"""Tests of forward that only raise: an assert, or an `if` whose body raises. Such a test can be kept as it is."""

from __future__ import annotations

import ast
import types

from gradsmith.source.file import FileModel
from gradsmith.source.loaded import file_named
from gradsmith.source.walk import once


def only_raises(frame: types.FrameType | None) -> bool:
    """Does the running line test something of which one side does nothing but raise?"""
    if frame is None:
        return False
    file = file_named(frame.f_code.co_filename)
    found: ast.stmt | None = None
    for statement in _tests(file) if file is not None else ():
        test: ast.expr = statement.test
        if test.lineno <= frame.f_lineno <= (test.end_lineno or test.lineno):
            found = statement  # the innermost comes last
    if isinstance(found, ast.If):
        return all(isinstance(s, ast.Raise) for s in found.body)
    return found is not None


@once
def _tests(file: FileModel) -> tuple[ast.If | ast.Assert, ...]:
    try:
        tree = file.tree
    except SyntaxError:
        return ()
    found = [n for n in ast.walk(tree) if isinstance(n, (ast.If, ast.Assert))]
    return tuple(sorted(found, key=lambda n: (n.lineno, n.col_offset)))

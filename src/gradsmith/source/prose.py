"""What the author of a Function says in words: comments and docstrings, its own and those of what applies it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.source import applied, declared

if TYPE_CHECKING:
    from gradsmith.source.model import FunctionModel

_QUOTED = re.compile(r"""["'`]+([A-Za-z][\w-]*)["'`]+""")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def words_about(function: FunctionModel) -> str:
    """Comments and docstrings at a class and inside it, then the docstrings of what applies it in its file.

    Names are not words: a variable called grad_scale says nothing.
    """
    comments = function.file.comment_lines
    lines = sorted(declared.lines_of(function.file, function.node))
    inside = [ast.get_docstring(n) for n in ast.walk(function.node) if isinstance(n, _DOCUMENTED)]
    said = [*(comments[n] for n in lines if n in comments), *inside, *_of_callers(function)]
    return "\n".join(words for words in said if words)


def quoted_words(function: FunctionModel) -> list[str]:
    """The words in quotes in what is said about a Function, "periodic" or 'neumann'; what names a parameter is none."""
    names = {param.name for param in function.forward.params} if function.forward is not None else set()
    found = [match[1] for match in _QUOTED.finditer(words_about(function))]
    return [word for word in dict.fromkeys(found) if word not in names]


def _of_callers(function: FunctionModel) -> Iterator[str | None]:
    """That is where users are told what a Function is."""
    known_as = applied.aliases(function.file, function.name)
    for node in function.file.tree.body if function.file.parses else ():
        if isinstance(node, _DOCUMENTED) and applied.applied_in(node, function.name, known_as):
            yield ast.get_docstring(node)

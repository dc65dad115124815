"""The source of what is loaded, where Python can still find it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any


def text(subject: Any) -> str:
    """What was written, without the indentation of what stands around it; empty where nobody knows.

    >>> import textwrap
    >>> text(textwrap.dedent).splitlines()[0]
    'def dedent(text):'
    """
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(subject)))
    except (OSError, TypeError, ValueError):
        return ""


def definition(function: Any) -> ast.FunctionDef | None:
    """A function's syntax, with the lines it has in its file; None for a lambda, and where there is no source.

    >>> import textwrap
    >>> definition(textwrap.dedent).args.args[0].arg
    'text'
    """
    try:
        lines, start = inspect.getsourcelines(inspect.unwrap(function))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    found = next(iter(tree.body), None)
    if not isinstance(found, ast.FunctionDef):
        return None
    ast.increment_lineno(found, start - 1)
    return found

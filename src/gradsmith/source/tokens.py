"""What only the tokens of a text tell: comments, and where strings end. Also whether a changed text is still Python."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

_NEWER_SYNTAX = re.compile(
    r"^\s*(type\s+\w+|(async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[|except\*)|[fF]['\"]|^\s*match\b"
)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def comments(text: str) -> dict[int, str]:
    """The comments of a text by line, as far as it can be read; the same words inside a string are none.

    >>> comments("x = '# no'  # yes")
    {1: '# yes'}
    """
    return {token.start[0]: token.string for token in _tokens(text) if token.type == tokenize.COMMENT}


def ends_inside_string(text: str) -> Iterator[int]:
    """The lines at whose end a string goes on.

    >>> list(ends_inside_string("x = '''a\\nb'''"))
    [1]
    """
    begun = 0
    for token in _tokens(text):
        name = tokenize.tok_name[token.type]
        if name == "STRING":
            yield from range(token.start[0], token.end[0])
        elif name == "FSTRING_START":  # Python 3.12 splits f-strings
            begun = token.start[0]
        elif name == "FSTRING_END":
            yield from range(begun, token.end[0])


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def looks_newer(line: str) -> bool:
    """Whether a line that could not be parsed may be of a later Python.

    >>> looks_newer("type Pair[T] = tuple[T, T]"), looks_newer("x = = 1")
    (True, False)
    """
    return _NEWER_SYNTAX.search(line) is not None


def parses(source: str | bytes) -> bool:
    """Whether this is Python.

    >>> parses("x = 1"), parses("x = ")
    (True, False)
    """
    try:
        ast.parse(source)
        return True
    except _UNREADABLE:
        return False


def means_the_same(before: str, after: str) -> bool:
    """Whether two texts are the same code: only comments and layout differ.

    >>> means_the_same("x = 1", "x = 1  # one")
    True
    """
    try:
        return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except _UNREADABLE:
        return False

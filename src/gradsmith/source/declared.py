"""Where `# gradsmith: surrogate[...]`, `approximate` and `assumes[...]` may stand: at a class, above it, or inside it.

lint and check both ask here, so that a comment means the same to them. Never imports torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.source.suppressions import DeclaredInComment

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def written_at(file: FileModel, node: Definition) -> DeclaredInComment | None:
    """What a comment declares about the gradient of this class (or custom op); the first one counts."""
    said = file.comments.declared
    if not said:
        return None
    lines = lines_of(file, node)
    return next((said[n] for n in sorted(said) if n in lines and not _in_string(node, n, said[n].column)), None)


def assumed_at(file: FileModel, node: Definition) -> list[str]:
    """The sentences that comments at this class or function say always hold."""
    said = file.comments.assumed
    lines = lines_of(file, node) if said else ()
    here = [(n, one) for n in sorted(said) if n in lines for one in said[n]]
    return [one.sentence for n, one in here if not _in_string(node, n, one.column)]


def lines_of(file: FileModel, node: Definition) -> set[int]:
    """The lines of a definition and the comments around it, without those of the classes inside it."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    last = node.end_lineno or node.lineno
    lines = {*_above(file, first, node.col_offset), *range(first, last + 1), *_below(file, last, node.col_offset)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef) and inner is not node:
            lines -= lines_of(file, inner)
    return lines


def _above(file: FileModel, first: int, indent: int) -> Iterator[int]:
    """The comment lines right above, as far in as the definition: further in, they belong to what stands before it."""
    number = first - 1
    while number >= 1 and _comment_indent(file, number) == indent:
        yield number
        number -= 1


def _below(file: FileModel, last: int, indent: int) -> Iterator[int]:
    """The comment lines at the end of a body, which are no part of any statement."""
    number = last + 1
    while number <= len(file.lines) and (_comment_indent(file, number) or 0) > indent:
        yield number
        number += 1


def _comment_indent(file: FileModel, number: int) -> int | None:
    """How far in a line begins that holds nothing but a comment."""
    text = file.lines[number - 1]
    plain = text.lstrip()
    return len(text) - len(plain) if plain.startswith("#") else None


def _in_string(node: Definition, line: int, column: int) -> bool:
    """A docstring may speak of the comment without being one."""
    strings = (part for part in ast.walk(node) if isinstance(part, (ast.Constant, ast.JoinedStr)))
    return any(
        (part.lineno, part.col_offset) <= (line, column) < (part.end_lineno or 0, part.end_col_offset or 0)
        for part in strings
    )

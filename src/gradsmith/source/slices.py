"""Parse only the classes that matter: find class headers by pattern, blank every other line, parse the rest.

Blank lines cost the parser next to nothing, and lines and columns of what remains stay those of the file. Where the
slicing meets something odd (code that does not parse on its own) the whole file is
parsed instead, so the result never depends on it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

_HEADER = re.compile(r"([ \t]*)class[ \t]+(\w+)[ \t]*(?:\[[^\]\n]*\])?[ \t]*(?:\(((?:[^()]|\([^()]*\))*)\))?[ \t]*:")

_DOTTED = re.compile(r"[\w.]+")

_STRINGS = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^'\\\n])*\'|\#[^\n]*''', re.S
)


class ClassHeader(NamedTuple):
    """A class statement seen by pattern: its name, what stands between its parentheses, its place."""

    name: str
    bases: tuple[str, ...]
    line: int
    indent: str
    offset: int


def triple_quotes(text: str) -> list[int]:
    """Where three quotes stand, in order."""
    found = []
    for quotes in ('"""', "'''"):
        at = text.find(quotes)
        while at >= 0:
            found.append(at)
            at = text.find(quotes, at + 3)
    return sorted(found)


def triple_quoted(text: str, quotes: Sequence[int]) -> list[tuple[int, int]]:
    """Where each string in triple quotes begins and ends, of a text with triple quotes in these places.

    A line between two of them begins outside of strings: only what stands before a quote in its own line is read.
    """
    found, end = [], 0
    for at in quotes:
        if at >= end:
            read = _STRINGS.finditer(text, max(end, text.rfind("\n", 0, at) + 1))
            around = next((match for match in read if match.end() > at), None)
            if around is not None and around.start() <= at:  # else it is never closed
                end = around.end()
                found += [around.span()] if around.start() == at else []
    return found


def headers(text: str) -> list[ClassHeader]:
    """Every line that looks like the start of a class."""
    found = []
    line, position = 1, 0
    at = text.find("class ")
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        match = _HEADER.match(text, start) if not text[start:at].strip() else None
        if match:
            line += text.count("\n", position, start)
            position = start
            found.append(ClassHeader(match[2], _base_names(match[3] or ""), line, match[1], start))
        at = text.find("class ", at + 6)
    return found


def _base_names(text: str) -> tuple[str, ...]:
    """`nn.Module, Generic[T], metaclass=M` -> ("nn.Module", "Generic")."""
    if "#" in text:
        text = re.sub(r"#[^\n]*", "", text)
    if not any(bracket in text for bracket in "([{"):
        return tuple(part for part in map(str.strip, text.split(",")) if _DOTTED.fullmatch(part))
    depth, part, parts = 0, "", []
    for char in text + ",":
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
            continue
        if depth == 0 and char not in ")]}":
            part += char
    return tuple(p for p in parts if _DOTTED.fullmatch(p))


def parse_classes(text: str, lines: Sequence[str], wanted: Sequence[ClassHeader]) -> ast.Module:
    """A tree that holds the wanted classes, with the positions they have in the file."""
    if "\r" in text or "\f" in text:
        return ast.parse(text)
    try:
        masked = _masked(lines, wanted)
        if masked is not None:
            return ast.parse(masked)
        alone = [ast.parse(_masked(lines, [header]) or text) for header in wanted]
        return ast.Module([node for tree in alone for node in tree.body], [])
    except SyntaxError:
        return ast.parse(text)


def _masked(lines: Sequence[str], wanted: Sequence[ClassHeader]) -> str | None:
    out = [""] * len(lines)
    end = 0
    for header in sorted(wanted, key=lambda h: h.line):
        if header.line <= end:
            continue
        start = header.line - 1
        while start > end and lines[start - 1].startswith(header.indent + "@"):
            start -= 1
        if header.indent:
            if start == 0 or out[start - 1]:
                return None
            out[start - 1] = "if 1:"
        end = end_of_block(lines, header)
        out[start:end] = lines[start:end]
    return "\n".join(out) + "\n"


def end_of_block(lines: Sequence[str], header: ClassHeader) -> int:
    """The number of lines up to the end of the class, by indentation."""
    deeper = header.indent + " ", header.indent + "\t"
    for number in range(header.line, len(lines)):
        text = lines[number]
        if text.startswith(deeper):
            continue
        stripped = text.strip()
        # A comment or a closing bracket at the margin does not end a class; other text does, unless it lies in a
        # string, and then what was cut off does not parse.
        if stripped and stripped[0] not in "#)]}":
            return number
    return len(lines)

"""Can a loop matter to the rules on layers? Asked of the text, because parsing a class costs more than reading it.

A class is left unparsed only where no rule could find anything in it: each of its loops goes through parts of the model and
computes nothing that is worth taking out of it, and no method with a loop makes a tensor that could be a state. Whatever is
written in an unusual way may matter.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know
from gradsmith.source.lexicon import is_a
from gradsmith.source.walk import once

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

FEW = 8  # times: not a loop through time
_OWN = re.compile(r"\bself\.\w+(?:\(\)|(?![\w(]))")  # `self.layers`, `self.children()`; not `self.project(x)`
_ARGUMENTS = re.compile(r"[^()]*(?:\((?:[^()]|\([^()]*\))*\)[^()]*)*\)")
_LITERAL = re.compile(r"range\((\d+)\)")


@cache
def _header() -> re.Pattern[str]:
    return re.compile(r"^([ \t]+)(for|while)\b(.*)$", re.M)


@cache
def _worth() -> re.Pattern[str]:
    return re.compile(rf"@|\b(?:{'|'.join(sorted(know.WORTH_HOISTING))})\s*\(")


@cache
def _makes() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(know.FACTORIES))})\s*\(")


def may_matter(file: FileModel, start: int, end: int) -> bool:
    """Whether a rule could find anything in the loops of a method, which stands between these characters."""
    loops = list(_header().finditer(file.text, start, end))
    if not loops:
        return False
    if _renames(file) or any(
        _makes_here(file.text, made.end(), end) for made in _makes().finditer(file.text, start, end)
    ):
        return True
    return any(
        not _goes_through_parts(loop[3])
        or _worth().search(file.text, loop.end(), _end_of(file.text, loop, end)) is not None
        for loop in loops
        if loop[2] == "for"
    )


@once
def _renames(file: FileModel) -> bool:
    """`from torch import matmul as product`: then names tell nothing."""
    told = know.WORTH_HOISTING | know.FACTORIES
    return any(name != (last := full.rpartition(".")[2]) and last in told for name, full in file.imports.names.items())


def _makes_here(text: str, opened: int, end: int) -> bool:
    """A tensor is made and no device is named between the brackets, the first of which stands before `opened`."""
    arguments = _ARGUMENTS.match(text, opened, end)
    return arguments is None or "device=" not in arguments[0]


def _goes_through_parts(header: str) -> bool:
    """As `steps.time_loops` judges the parsed loop; False where this line does not tell."""
    line = header.partition("#")[0].rstrip()
    target, found, iterated = line.removesuffix(":").partition(" in ")
    if not found or not line.endswith(":"):
        return False
    literal = _LITERAL.fullmatch(iterated.strip())
    if literal is not None and int(literal[1]) <= FEW:
        return True
    if "range(" not in iterated and _OWN.search(iterated) is not None:
        return True
    return is_a(f"{iterated} {target}", "part of a model")


def _end_of(text: str, loop: re.Match[str], end: int) -> int:
    """Where the body of a loop ends, by indentation."""
    at = loop.end() + 1
    while at < end:
        following = text.find("\n", at, end)
        following = end if following < 0 else following
        line = text[at:following]
        stripped = line.lstrip()
        if stripped and stripped[0] not in "#)]}" and len(line) - len(stripped) <= len(loop[1]):
            return at
        at = following + 1
    return end

"""Lines that are too long, broken before the signs of a sum, else at the commas of their longest bracket, as a formatter would."""

from __future__ import annotations

from itertools import pairwise

_WIDTH = 110
_OPEN, _CLOSE = "([{", ")]}"


def wrapped(line: str, width: int = _WIDTH) -> list[str]:
    """The line, or its parts.

    >>> wrapped("f(alpha, beta)", width=10)
    ['f(', '    alpha,', '    beta,', ')']
    """
    if len(line) <= width:
        return [line]
    if (terms := in_terms(line, width)) is not None:
        return terms
    brackets = _brackets(line)
    best = max(brackets, key=lambda b: b[1] - b[0], default=None)
    if best is None:
        return [line]
    start, end = best
    parts = _parts(line[start + 1 : end])
    if len(parts) < 2:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + "    "
    together = f"{inner}{', '.join(parts)}"
    if len(together) < width and line[start] == "(" and not line.lstrip().startswith(("def ", "class ")):
        return [line[: start + 1], together, indent + line[end:]]
    return [line[: start + 1], *(piece for p in parts for piece in wrapped(f"{inner}{p},", width)), indent + line[end:]]


def in_terms(line: str, width: int = _WIDTH) -> list[str] | None:
    """`y = a + b` with every term in a line of its own, also where the sum is one factor, or what a method is called on.

    None where that would not be shorter than a line.

    >>> in_terms("y = alpha * beta - gamma", width=16)
    ['y = (', '    alpha * beta', '    - gamma', ')']
    >>> in_terms("y = scale * (alpha - beta).sum()", width=24)
    ['y = scale * (', '    alpha - beta', ').sum()']
    """
    name, equals, value = line.partition(" = ")
    if not equals or not name.strip().replace("_", "").isalnum():
        return None
    indent = line[: len(line) - len(line.lstrip())]
    head, inner, tail = "(", value, ")"
    if not _signs(value):
        grouping = [(a, b) for a, b in _brackets(value) if value[a] == "(" and (a == 0 or value[a - 1] in " -")]
        best = max(grouping, key=lambda b: b[1] - b[0], default=None)
        if best is None:
            return None
        head, inner, tail = value[: best[0] + 1], value[best[0] + 1 : best[1]], value[best[1] :]
        if "," in "".join(letter for _, letter in _outside(inner)):
            return None
    first, last = f"{name} = {head}", f"{indent}{tail}"
    if len(f"{indent}    {inner}") <= width:
        lines = [first, f"{indent}    {inner}", last]
    else:
        cuts = [0, *_signs(inner), len(inner)]
        lines = [first, *(f"{indent}    {inner[a:b].strip()}" for a, b in pairwise(cuts)), last]
    return lines if all(len(each) <= width for each in lines) else None


def _signs(text: str) -> list[int]:
    """Where a plus or minus between two terms stands, outside of all brackets."""
    return [i for i, letter in _outside(text) if letter in "+-" and text[i - 1 : i + 2] == f" {letter} "]


def _outside(text: str) -> list[tuple[int, str]]:
    """The letters that are in no bracket and in no string."""
    depth, found = 0, []
    for place, letter in _code(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and letter not in _CLOSE:
            found.append((place, letter))
    return found


def _brackets(line: str) -> list[tuple[int, int]]:
    """(from, to) of the brackets that stand in no other."""
    found: list[tuple[int, int]] = []
    depth, start = 0, 0
    for place, letter in _code(line):
        if letter in _OPEN:
            depth, start = depth + 1, place if depth == 0 else start
        elif letter in _CLOSE:
            depth -= 1
            if depth == 0:
                found.append((start, place))
    return found


def _parts(text: str) -> list[str]:
    """What stands between the commas."""
    depth, last, found = 0, 0, []
    for place, letter in _code(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if (letter == "," and depth == 0 and not text[last:place].lstrip().startswith("lambda")) or (
            letter == "," and depth == 0 and ":" in text[last:place]
        ):
            found.append(text[last:place].strip())
            last = place + 1
    return [*found, text[last:].strip()] if text[last:].strip() else found


def _code(text: str) -> list[tuple[int, str]]:
    """The letters that are in no string."""
    quote, found = "", []
    for place, letter in enumerate(text):
        if letter in "'\"" and quote in ("", letter) and text[place - 1 : place] != "\\":
            quote = "" if quote else letter
        elif not quote:
            found.append((place, letter))
    return found

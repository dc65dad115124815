"""Lines that are too long, broken at the commas of their longest bracket, as a formatter would."""

from __future__ import annotations

_WIDTH = 110
_OPEN, _CLOSE = "([{", ")]}"


def wrapped(line: str, width: int = _WIDTH) -> list[str]:
    """The line, or its parts.

    >>> wrapped("f(alpha, beta)", width=10)
    ['f(', '    alpha,', '    beta,', ')']
    """
    if len(line) <= width:
        return [line]
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

"""What users tell gradsmith in comments: what to ignore, which gradients are meant not to be exact, what always holds.

# gradsmith: ignore[inplace-grad, GS401]     on the line of the finding, or on the class line for the whole class
# gradsmith: ignore                          everything there
# noqa: GS202                                understood too, on the line of the finding
# gradsmith: surrogate[straight-through]     at a class, above or inside it: the gradient is a stand-in, on purpose
# gradsmith: approximate                     at a class, above or inside it: the gradient is known to be inexact
# gradsmith: assumes[matrix is symmetric]    at a class, above or inside it: that always holds, do not tell me again
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gradsmith.codes import begins

_COMMENT = re.compile(r"#\s*gradsmith:\s*(ignore|surrogate|approximate)\b(?:\s*\[([^\]\n]*)\])?", re.I)
# A sentence may hold brackets and commas: it ends at the last bracket before the end of the comment, else at the first.
_ASSUMES = re.compile(r"#\s*gradsmith:\s*assumes\s*\[(?:(.*?)\](?=\s*(?:#|$))|([^\]\n]*)\])", re.I)
_NOQA = re.compile(r"#\s*noqa\b(?:\s*:\s*([A-Za-z0-9_,\- ]+))?", re.I)


class DeclaredInComment(NamedTuple):
    """The author says that a gradient is not the exact derivative, on purpose."""

    gradient: Literal["surrogate", "approximate"]
    kind: str = ""
    column: int = 0  # of the comment, in bytes, as ast counts


class Assumption(NamedTuple):
    """A sentence that the author says always holds: "matrix is symmetric"."""

    sentence: str
    column: int = 0  # of the comment, in bytes, as ast counts


class Suppression(NamedTuple):
    """One `ignore` comment: the rules it names (none: all of them)."""

    line: int
    rules: tuple[str, ...]
    noqa: bool = False

    def covers(self, name: str, code: str) -> bool:
        if not self.rules:
            return True
        return any(r.lower().replace("_", "-") == name or begins(code, r) for r in self.rules)


@dataclass
class Suppressions:
    """All comments of one file that speak to us, by line, and which of them were of use."""

    by_line: dict[int, list[Suppression]] = field(default_factory=dict)
    declared: dict[int, DeclaredInComment] = field(default_factory=dict)
    assumed: dict[int, list[Assumption]] = field(default_factory=dict)
    used: set[Suppression] = field(default_factory=set)
    ran: frozenset[str] = frozenset()  # the rules of this run; known when `unused-ignore` asks

    def hides(self, name: str, code: str, lines: Sequence[int], class_line: int | None = None) -> bool:
        """Is a finding of this rule on these lines suppressed there, or on the line of its class?"""
        return bool(self.hiding(name, code, lines, [class_line] if class_line else []))

    def hiding(self, name: str, code: str, lines: Sequence[int], head: Sequence[int] = ()) -> list[Suppression]:
        """The comments that hide a finding of this rule: on its lines, or in the head of its class. They were of use, then."""
        found = []
        for line in dict.fromkeys((*lines, *head)):
            for suppression in self.by_line.get(line, ()):
                speaks = line in lines or not suppression.noqa
                if speaks and suppression.covers(name, code):
                    found.append(suppression)
        self.used.update(found)
        return found


def read(lines: Sequence[str]) -> Suppressions:
    """The comments of a file.

    >>> read(["g.mul_(2)  # gradsmith: ignore[inplace-grad]"]).hides("inplace-grad", "GS202", [1])
    True
    """
    found = Suppressions()
    for number, text in enumerate(lines, 1):
        if "#" not in text:
            continue
        ours = "gradsmith:" in text.lower()
        for match in _COMMENT.finditer(text) if ours else ():
            names = tuple(n.strip() for n in (match[2] or "").split(",") if n.strip())
            word = match[1].lower()
            if word == "ignore":
                found.by_line.setdefault(number, []).append(Suppression(number, names))
                continue
            gradient: Literal["surrogate", "approximate"] = "surrogate" if word == "surrogate" else "approximate"
            found.declared[number] = DeclaredInComment(gradient, names[0] if names else "", _column(text, match))
        for match in _ASSUMES.finditer(text) if ours else ():
            if sentence := (match[1] or match[2] or "").strip():
                found.assumed.setdefault(number, []).append(Assumption(sentence, _column(text, match)))
        if "noqa" in text.lower() and (noqa := _NOQA.search(text)):
            codes = tuple(c for c in re.split(r"[,\s]+", noqa[1] or "") if c)
            found.by_line.setdefault(number, []).append(Suppression(number, codes, noqa=True))
    return found


def _column(text: str, match: re.Match[str]) -> int:
    return len(text[: match.start()].encode("utf-8", "surrogatepass"))

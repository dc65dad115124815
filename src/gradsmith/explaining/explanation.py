"""`gs.explain(text)`: the entry, as text or HTML, and what lint and check say of the Function that the traceback names."""

from __future__ import annotations

import html
import textwrap
import traceback
from dataclasses import dataclass, field
from typing import Any

from gradsmith.explaining import matching, named, pasted
from gradsmith.explaining.entries import HEADINGS, Entry
from gradsmith.findings import Report

_WIDTH = 110
UNKNOWN = "unknown: no error of PyTorch around custom gradients is worded like this"


@dataclass(frozen=True)
class Explanation:
    """What an error means. `known` is False, and `entry` None, for an error that is none of autograd's.

    `score` is 1 where PyTorch's own words were found, lower where the text was reworded; `others` are entries that fit
    almost as well.
    `function` is `file.py::Name` of the Function that the traceback names, `report` what gradsmith says of it.
    """

    entry: Entry | None = None
    score: float = 0.0
    others: tuple[str, ...] = ()
    function: str = ""
    report: Report = field(default_factory=Report)

    @property
    def known(self) -> bool:
        return self.entry is not None

    @property
    def name(self) -> str:
        """The name of the entry, or `unknown`."""
        return self.entry.name if self.entry else "unknown"

    def short(self) -> str:
        """Cause and remedy in a few lines, for the end of a traceback."""
        if self.entry is None:
            return ""
        parts = [f"gradsmith: {self.entry.title}.", *(f"{h}: {self.entry.section(h)}" for h in HEADINGS)]
        parts += [f"{f.code} {f.rule}, line {f.line}: {f.message}" for f in self.report.findings]
        more = [f"gradsmith check {self.function}"] if self.function else []
        parts.append("More: " + ", ".join([f"gradsmith explain {self.entry.name}", *more]))
        return "\n".join(_filled(part) for part in parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        entry = self.entry
        sections = {h.lower(): entry.section(h) for h in HEADINGS} if entry else {}
        return {
            "error": self.name,
            "known": self.known,
            "score": round(self.score, 3),
            "others": list(self.others),
            "title": entry.title if entry else UNKNOWN,
            **sections,
            "bad": entry.bad.strip() if entry else "",
            "good": entry.good.strip() if entry else "",
            "rules": [rule.name for rule in entry.rules] if entry else [],
            "function": self.function,
            "report": self.report.to_dict() if self.function else None,
        }

    def __str__(self) -> str:
        lines = page(self.entry) if self.entry else [UNKNOWN]
        if self.entry and self.score < 1:
            also = f" It might also be: {', '.join(self.others)}." if self.others else ""
            lines += ["", f"Recognised by {self.score:.0%} of its words; paste the whole message to be sure.{also}"]
        if self.function:
            lines += ["", f"Of {self.function} gradsmith says", "", str(self.report).rstrip()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(error: str | BaseException, *, check: bool = False) -> Explanation:
    """What an error means: a message, a part of one, a traceback, or the exception itself.

    Where the traceback names a Function of yours, lint of that Function comes with it; with `check`, it is run, too.

    >>> explain("RuntimeError: grad can be implicitly created only for scalar outputs").name
    'scalar-outputs-only'
    >>> explain("KeyError: 'weight'").known
    False
    """
    text = error if isinstance(error, str) else "".join(traceback.format_exception(error))
    read = pasted.read(text)
    found = matching.match(read)
    if found is None:
        return Explanation()
    function = named.function_in(read)
    if function is None:
        return Explanation(found.entry, found.score, found.others)
    return Explanation(found.entry, found.score, found.others, function.target, function.examined(check=check))


def page(entry: Entry) -> list[str]:
    """The entry's page, line by line."""
    lines = [entry.name, "", entry.title, ""]
    for heading in HEADINGS:
        lines += [heading, "-" * len(heading), entry.section(heading), ""]
    lines += _example("Raises", entry.bad) + _example("Works", entry.good)
    rules = [f"{rule.name} ({rule.code})" for rule in entry.rules]
    return [*lines, f"Found before it happens by: {', '.join(rules)}"] if rules else lines[:-1]


def _example(heading: str, source: str) -> list[str]:
    return [heading, "-" * len(heading), textwrap.indent(source.strip(), "    "), ""]


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)

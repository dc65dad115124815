"""Whatever comes from user code or file names, made fit to be shown: the one place that escapes, for every text format.

What Python's own `repr` would not print (control, C1 and bidirectional characters, half surrogates, bytes of a name that are
not UTF-8) is shown as `\\x1b`. So no name, snippet or exception text can move a cursor, reverse a line, break XML, or begin
a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gradsmith.findings import Finding, Report, Skipped, Subject

PROSE = "\n\t"  # what a text of several lines keeps
# Fields that are read by machines, or by which source is looked up; they are escaped where they are shown.
_RAW = frozenset(("path", "snippet", "edits", "symptoms", "severity", "lenses", "applicability", "blame", "verdict"))
_ONE_LINE = frozenset(("function", "argument", "name", "rule", "code"))


def escaped(text: str, keep: str = "") -> str:
    """`text` with every character that does not print shown by its number.

    >>> escaped("a\\x1b[31m b")
    'a\\\\x1b[31m b'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _number(c) for c in text)


def escaped_in(value: Any, keep: str = PROSE) -> Any:
    """The same for all text in lists and dicts."""
    if isinstance(value, str):
        return escaped(value, keep)
    if isinstance(value, Mapping):
        return {escaped_in(key, keep): escaped_in(inner, keep) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(escaped_in(inner, keep) for inner in value)
    return value


def presentable(report: Report, keep: str = PROSE) -> Report:
    """The report as a text format may show it; `keep` are the characters that a message may hold."""
    return replace(
        report,
        findings=[_finding(finding, keep) for finding in report.findings],
        subjects=[_fields(subject, keep) for subject in report.subjects],
        skipped=[Skipped(each.path, escaped(each.reason, keep)) for each in report.skipped],
        notes=[escaped(note, keep) for note in report.notes],
    )


def without_commands(text: str) -> str:
    """The same lines, none of which a runner of GitHub takes for a workflow command (`::error::`, `##[error]`).

    >>> without_commands("x\\n  ::error::gone")
    'x\\n  \\\\x3a:error::gone'
    """
    if "##[" in text:
        text = text.replace("##[", "\\x23#[")
    return re.sub(r"^(\s*)::", r"\1\\x3a:", text, flags=re.MULTILINE) if "::" in text else text


def strict_unicode(value: Any) -> Any:
    """For JSON: what is not Unicode (a byte of a file name) as `\\xff`, which every parser reads."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "".join(_number(c) if "\ud800" <= c <= "\udfff" else c for c in value)
        return value
    if isinstance(value, Mapping):
        return {strict_unicode(key): strict_unicode(inner) for key, inner in value.items()}
    return [strict_unicode(inner) for inner in value] if isinstance(value, list) else value


def _finding(finding: Finding, keep: str) -> Finding:
    shown: Finding = _fields(finding, keep)
    reproduce = finding.reproduce
    if reproduce is not None:
        reproduce = replace(
            reproduce, inputs=escaped(reproduce.inputs, keep), snippet=escaped(reproduce.snippet, PROSE)
        )
    return replace(shown, symptoms=tuple(_finding(s, keep) for s in finding.symptoms), reproduce=reproduce)


def _fields(value: Finding | Subject, keep: str) -> Any:
    changed: dict[str, Any] = {}
    for field in fields(value):
        old = getattr(value, field.name)
        if field.name not in _RAW and old:
            new = escaped_in(old, "" if field.name in _ONE_LINE else keep)
            if new != old:
                changed[field.name] = new
    return replace(value, **changed) if changed else value


def _number(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8, as Python keeps it in file names
        return f"\\x{number - 0xDC00:02x}"
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"

"""The place of a finding: the user's own lines with two around them, a caret, and the repair as a diff."""

from __future__ import annotations

from gradsmith.findings import Edit, Finding
from gradsmith.report.escaping import escaped
from gradsmith.report.layout import cut
from gradsmith.report.place import place
from gradsmith.report.style import Style
from gradsmith.source.loaded import line_of

MARK = {"error": "red", "warning": "yellow", "info": "cyan"}
_AROUND = 2
_LONGEST = 200  # lines that a repair may reach over and still be shown


def shown(finding: Finding, style: Style, width: int) -> list[str]:
    """`--> file:line:column`, the line with a caret between its neighbours, and what `--fix` would write."""
    if finding.path is None:
        return []
    lines = [f"  {style.dim('-->')} {place(finding)}"]
    if finding.line is None or not finding.snippet:
        return lines
    text = finding.snippet.rstrip("\n")
    around = _neighbours(finding, text)
    digits = len(str(max(around, default=finding.line)))
    shift = min((len(t) - len(t.lstrip()) for t in around.values() if t.strip()), default=0)
    room = max(width - digits - 5, 8)
    for number, raw in around.items():
        # Where a character is shown by its number, what follows stands further right.
        line, start = escaped(raw[shift:].rstrip(), "\t"), (finding.column or 0)
        column = len(escaped(raw[shift:start], "\t")) if number == finding.line else 0
        code, left = cut(line, room, column)
        lines.append(f"  {number:>{digits}} | {code}".rstrip())
        if number == finding.line:
            span = len(escaped(raw[start : start + max(0, _span(finding, text))], "\t"))
            before = max(0, column - left)
            carets = "^" * max(1, min(span, room - before))
            mark = style.paint(carets, MARK[finding.severity or "info"])
            lines.append(f"  {' ' * digits} | {' ' * before}{mark}")
    return [*lines, *_diff(finding, style, digits, shift, room)]


def _neighbours(finding: Finding, text: str) -> dict[int, str]:
    """The line and up to two on either side, where the file still says what the finding saw."""
    assert finding.line is not None
    found = {finding.line: text}
    if finding.cell is None and line_of(finding.path, finding.line).rstrip("\n") == text:
        for number in range(max(1, finding.line - _AROUND), finding.line + _AROUND + 1):
            found.setdefault(number, line_of(finding.path, number).rstrip("\n"))
    numbers = sorted(found)
    while numbers[0] != finding.line and not found[numbers[0]].strip():
        numbers.pop(0)
    while numbers[-1] != finding.line and not found[numbers[-1]].strip():
        numbers.pop()
    return {number: found[number] for number in numbers}


def _span(finding: Finding, text: str) -> int:
    start = finding.column or 0
    if finding.end_line == finding.line and finding.end_column is not None:
        return finding.end_column - start
    return len(text.rstrip()) - start


def _diff(finding: Finding, style: Style, digits: int, shift: int, room: int) -> list[str]:
    """The lines before and after the repair, where it changes whole lines of a file that is at hand."""
    if not finding.edits or finding.cell is not None:
        return []
    numbers = [n for edit in finding.edits for n in range(edit.line, edit.end_line + 1)]
    before = {n: line_of(finding.path, n).rstrip("\n") for n in range(min(numbers), max(numbers) + 1)}
    if len(before) > _LONGEST or not any(before.values()):
        return []
    after = _edited(before, finding.edits)
    margin = " " * digits
    if len(before) > 2 * _AROUND + 1:
        return _hunks(list(before.values()), after, style, margin, shift, room)
    gone = [style.paint(f"  {margin} - {_code(line[shift:], room)}", "red") for line in before.values()]
    new = [style.paint(f"  {margin} + {_code(line[shift:], room)}", "green") for line in after if line.strip()]
    return [*gone, *new]


def _code(line: str, room: int) -> str:
    return cut(escaped(line, "\t"), room)[0]


def _hunks(before: list[str], after: list[str], style: Style, margin: str, shift: int, room: int) -> list[str]:
    """Only the lines that change, where an edit reaches from forward to backward."""
    from difflib import SequenceMatcher

    lines: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [f"  {margin}   ..."] if lines and b < len(before) else []
            continue
        lines += [style.paint(f"  {margin} - {_code(t[shift:], room)}".rstrip(), "red") for t in before[a:b]]
        lines += [style.paint(f"  {margin} + {_code(t[shift:], room)}".rstrip(), "green") for t in after[c:d]]
    return lines


def _edited(before: dict[int, str], edits: tuple[Edit, ...]) -> list[str]:
    first = min(before)
    text = "\n".join(before.values())
    starts = [0]
    for line in before.values():
        starts.append(starts[-1] + len(line) + 1)
    for edit in sorted(edits, key=lambda e: (e.line, e.column), reverse=True):
        begin = starts[edit.line - first] + edit.column
        end = starts[edit.end_line - first] + edit.end_column
        text = text[:begin] + edit.replacement + text[end:]
    return text.split("\n")

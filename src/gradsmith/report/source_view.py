"""The place of a finding: the user's own lines with two around them, a caret, and the repair as a diff."""

from __future__ import annotations

from gradsmith.findings import Edit, Finding
from gradsmith.report.escaping import escaped
from gradsmith.report.layout import cut, wrapped
from gradsmith.report.place import place
from gradsmith.report.style import Style
from gradsmith.source.loaded import line_of

MARK = {"error": "red", "warning": "yellow", "info": "cyan"}
_AROUND = 2
_LONGEST = 200  # lines that a repair may reach over and still be shown


def shown(finding: Finding, style: Style, width: int) -> list[str]:
    """`--> file:line:column`, the line with a caret between its neighbours, and what `--fix` would write.

    Lines keep their indentation, so that the column is the one that an editor shows.
    """
    if finding.path is None:
        return []
    lines = [f"  {style.dim('-->')} {place(finding)}"]
    text = _text(finding)
    if finding.line is None or not text:
        return lines
    around = _neighbours(finding, text)
    digits = len(str(max([*around, *(edit.end_line for edit in finding.edits if finding.cell is None)])))
    room = max(width - digits - 5, 8)
    for number, raw in around.items():
        # Where a character is shown by its number, what follows stands further right.
        line, start = escaped(raw.rstrip(), "\t"), (finding.column or 0)
        column = len(escaped(raw[:start], "\t")) if number == finding.line else 0
        code, left = cut(line, room, column)
        lines.append(f"  {number:>{digits}} | {code}".rstrip())
        if number == finding.line:
            span = len(escaped(raw[start : start + max(0, _span(finding, text))], "\t"))
            before = max(0, column - left)
            carets = "^" * max(1, min(span, room - before))
            mark = style.paint(carets, MARK[finding.severity or "info"])
            lines.append(f"  {' ' * digits} | {' ' * before}{mark}")
    return [*lines, *_diff(finding, style, digits, room)]


def _text(finding: Finding) -> str:
    """The line as it was when it was looked at; of a finding about a whole class, its first line as it is now."""
    if finding.snippet or finding.cell is not None:
        return finding.snippet.rstrip("\n")
    return line_of(finding.path, finding.line).rstrip()


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


def _diff(finding: Finding, style: Style, digits: int, room: int) -> list[str]:
    """The lines before and after the repair, where it changes whole lines of a file that is at hand; who writes it comes first."""
    if not finding.edits or finding.cell is not None:
        return []
    numbers = [n for edit in finding.edits for n in range(edit.line, edit.end_line + 1)]
    before = {n: line_of(finding.path, n).rstrip("\n") for n in range(min(numbers), max(numbers) + 1)}
    if len(before) > _LONGEST or not any(before.values()):
        return []
    hunks = _hunks(before, _edited(before, finding.edits), style, digits, room)
    unsafe = finding.applicability == "unsafe"
    how = "--fix --unsafe-fixes makes it; help says why it is unsafe" if unsafe else "--fix makes it"
    told = wrapped(f"proposed change ({how}):", room + digits + 5, first="  ", indent="    ")
    return [*map(style.dim, told), *hunks] if hunks else []


def _code(line: str, room: int) -> str:
    return cut(escaped(line, "\t"), room)[0]


def _hunks(old: dict[int, str], after: list[str], style: Style, digits: int, room: int) -> list[str]:
    """Only the lines that change: an edit may reach from forward to backward, or end in a line that stays as it is.

    Lines that go have their numbers; what is only added stands beside a line that stays.
    """
    from difflib import SequenceMatcher

    before, first = list(old.values()), min(old)

    def numbered(at: int, mark: str) -> str:
        return f"  {first + at:>{digits}} {mark} {_code(before[at], room)}".rstrip()

    lines: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [f"  {' ' * digits}   ..."] if lines and b < len(before) else []
            continue
        added = [style.paint(f"  {' ' * digits} + {_code(t, room)}".rstrip(), "green") for t in after[c:d]]
        lines += [numbered(a - 1, "|")] if tag == "insert" and a > 0 else []
        lines += [style.paint(numbered(at, "-"), "red") for at in range(a, b)] + added
        lines += [numbered(a, "|")] if tag == "insert" and a == 0 else []
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

"""a comment hides a finding that is not there

What it finds
-------------
`# gradsmith: ignore[rule]` or `# noqa: GSnnn` on a line where that rule found nothing to hide, and names of rules that do
not exist. Only rules that lint applies, and that ran, are judged; `# noqa` without a code of ours is somebody else's.

Why it matters
--------------
The comment was written for a defect that has been fixed since, or it has a typing mistake and hides nothing. If the
defect comes back, the old comment hides it and nobody decides about it again. Measured: in a file whose in-place write
was fixed and later brought back, lint stays silent until the comment is gone.

Known problems
--------------
A rule that check applies, too, may see at run time what the source does not show (the write of a kernel); for
these the finding is only `info`. In a folder, a `# noqa` in a file that holds nothing else for lint is not looked at.

References
----------
Measured on gradsmith's own example of inplace-grad: GOOD with the comment of BAD reports nothing but this rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.codes import begins
from gradsmith.findings import Edit, Finding, Severity

if TYPE_CHECKING:
    from gradsmith.source import FileModel
    from gradsmith.source.suppressions import Suppression

_IGNORE = re.compile(r"#\s*gradsmith:\s*ignore\b(?:\s*\[[^\]\n]*\])?", re.I)
_NOQA = re.compile(r"#\s*noqa\b(?:\s*:\s*[A-Za-z0-9_,\- ]+)?", re.I)

CODE = "GS890"
SEVERITY = "warning"
FIXABLE = True
AFTER_OTHERS = True
TRIGGERS = ("gradsmith:", "noqa: GS", "noqa:GS")
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2  # gradsmith: ignore[inplace-grd]


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


class _Verdict(NamedTuple):
    message: str
    severity: Severity


def lint_file(file: FileModel) -> Iterator[Finding]:
    unused = [s for here in file.comments.by_line.values() for s in here if s not in file.comments.used]
    comments = _comments(file) if unused else set()
    for suppression in unused:
        verdict = _judged(suppression, file.comments.ran)
        if verdict is not None and suppression.line in comments:
            yield _finding(file, suppression, verdict)


def _judged(suppression: Suppression, ran: frozenset[str]) -> _Verdict | None:
    """What to say about a comment that hid nothing, and how loudly; None where nothing is certain."""
    from gradsmith.catalog import left_out, rules
    from gradsmith.nearest import nearest

    known = rules()
    codes = {rule.code: name for name, rule in known.items()}
    names = [codes.get(r.upper(), r.lower().replace("_", "-")) for r in suppression.rules]
    if suppression.noqa:
        # The codes of other linters may share the comment, and a bare one is meant for all of them.
        ours = bool(names) and all(name in ran for name in names)
        return _Verdict(f"`# noqa: {', '.join(suppression.rules)}` hides nothing.", _loudness(names)) if ours else None
    if not names:
        usual = [name for name, rule in known.items() if "lint" in rule.lenses and rule.state == "stable"]
        everything = all(name in ran for name in usual)
        return _Verdict("`# gradsmith: ignore` hides nothing.", "info") if everything else None
    for written, name in zip(suppression.rules, names):
        if name not in known and not any(begins(code, written) for code in codes) and not left_out(written):
            meant = nearest(written, [*known, *codes])
            end = "" if meant.endswith("?") else "."
            return _Verdict(f"No rule is called '{written}', so this comment hides nothing; {meant}{end}", "warning")
    if not all(name in ran for name in names):
        return None
    return _Verdict(f"`# gradsmith: ignore[{', '.join(suppression.rules)}]` hides nothing.", _loudness(names))


def _loudness(names: Sequence[str]) -> Severity:
    from gradsmith.catalog import rules

    return "warning" if all(rules()[name].lenses == ("lint",) for name in names) else "info"


def _finding(file: FileModel, suppression: Suppression, verdict: _Verdict) -> Finding:
    text = file.lines[suppression.line - 1]
    match = (_NOQA if suppression.noqa else _IGNORE).search(text)
    start, end = match.span() if match else (len(text), len(text))
    begin = len(text[:start].rstrip())
    alone = begin == 0 and not text[end:].strip() and suppression.line < len(file.lines)
    after = (suppression.line + 1, 0) if alone else (suppression.line, end)
    return Finding(
        message=verdict.message,
        severity=verdict.severity,
        path=file.path,
        line=suppression.line,
        column=start,
        end_line=suppression.line,
        end_column=end,
        cell=file.cell,
        snippet=text,
        advice="Remove the comment, or correct the rule's name.",
        edits=(Edit(suppression.line, begin, *after, ""),),
        applicability="safe",
    )


def _comments(file: FileModel) -> set[int]:
    """Lines with a real comment: the same words inside a string are an example, not a wish."""
    return set(file.comment_lines)

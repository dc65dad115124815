"""What a hover shows: the page of the rule that a finding or an `ignore` comment names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradsmith.catalog import Rule, find
from gradsmith.findings import GradsmithError
from gradsmith.report.rule_pages import as_markdown
from gradsmith.source.suppressions import read

_NAME = re.compile(r"[\w-]+")


def page_at(text: str, line: int, column: int, rules: Sequence[str]) -> str | None:
    """The pages of `rules`, which have findings there, or of a rule that a comment names at this place; as markdown."""
    found = [find(name) for name in rules] or _named_at(text, line, column)
    return "\n\n---\n\n".join(_page(rule) for rule in found) or None


def _page(rule: Rule) -> str:
    return f"### {rule.name} ({rule.code})\n\n{rule.title}\n\n{as_markdown(rule)}"


def _named_at(text: str, line: int, column: int) -> list[Rule]:
    here = next((m[0] for m in _NAME.finditer(text) if m.start() <= column < m.end()), None)
    suppressed = [name for one in read([text]).by_line.get(1, ()) for name in one.rules]
    if here is None or here not in suppressed:
        return []
    try:
        return [find(here)]
    except GradsmithError:  # a whole family, or a misspelled name
        return []

"""What a cell of a notebook shows: HTML that folds, with colours of its own, that is a part of the page and no page in a frame.

Without a script or a style sheet, because most viewers of notebooks remove both; what is left there still folds and still
has its colours. Letters take the colour of the page, so that they can be read on dark and on light.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from gradsmith.findings import GradsmithError, Report
from gradsmith.report.escaping import escaped_in, presentable
from gradsmith.report.html_format import filled
from gradsmith.report.page.cards import Card, cards_of, profile_card
from gradsmith.report.place import shown_path
from gradsmith.report.verdicts import word

_MANY = 10  # cards: of more, only those that need a look are unfolded


def report_html(report: Report) -> str:
    """A report for a cell."""
    text = str(report)
    skipped = [f"skipped {shown_path(each.path)}: {each.reason}" for each in report.skipped]
    shown = presentable(report)
    cards = cards_of(shown, prefix=_own(text), drawn=False)
    return _cell(cards, shown.closing_line(), [*shown.notes, *skipped], text)


def profile_html(profile: Mapping[str, Any], text: str) -> str:
    """A profile for a cell, from its JSON."""
    return _cell([profile_card(escaped_in(profile), 0, drawn=False)], "", [], text)


def plan_html(rows: Sequence[tuple[str, str]]) -> str:
    """A plan for a cell: (what, how) in the order in which they are told."""
    return _page("plan.html.j2", "\n".join(f"{what} {how}" for what, how in rows), rows=rows)


def _cell(cards: Sequence[Card], closing: str, notes: Sequence[str], text: str) -> str:
    unfolded = {card.key for card in cards if len(cards) <= _MANY or _needs_a_look(card)}
    return _page("cell.html.j2", text, cards=cards, closing=closing, notes=notes, unfolded=unfolded, word=word)


def _needs_a_look(card: Card) -> bool:
    return card.verdict == "refuted" or any(finding.severity == "error" for finding in card.findings)


def _page(template: str, text: str, **values: Any) -> str:
    try:
        return filled(template, **values)
    except GradsmithError:  # without Jinja2
        return f"<pre>{html.escape(text)}</pre>"


def _own(text: str) -> str:
    """What keeps the ids of one output apart from those of others in the same notebook, and is the same for the same report."""
    import hashlib

    return f"g{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"

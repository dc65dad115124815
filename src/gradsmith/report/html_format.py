"""One self-contained HTML file: no network, dark and light, printable. Everything from user code is escaped by Jinja2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradsmith.about import FOLDER, VERSION
from gradsmith.findings import GradsmithError, Report
from gradsmith.report.escaping import escaped_in, presentable
from gradsmith.report.page.cards import Card, cards_of, profile_card
from gradsmith.report.place import shown_path

MISSING = "the HTML report needs Jinja2, which is not installed here; run: pip install 'jinja2>=3.1'"
_MARKS = {"works": "yes", "fails": "FAILS", "not supported": "no", "not tried": "-"}
_SIGNS = {"judged": "+", "ran": "~", "never": "!", "": " "}


def render(report: Report, *, color: bool = False) -> str:
    """The report as a page of its own."""
    skipped = [(shown_path(each.path), each.reason) for each in report.skipped]
    report = presentable(report)
    return _page(cards_of(report), report.closing_line(), report.notes, skipped)


def render_profiles(profiles: Sequence[Mapping[str, Any]]) -> str:
    """Profiles, as their JSON has them, as a page of its own."""
    cards = [profile_card(escaped_in(profile), number) for number, profile in enumerate(profiles)]
    return _page(cards, f"{len(cards)} profiled", [], [])


def _code(text: str) -> Any:
    """A sentence whose `parts between backticks` are shown as code; a lone backtick stays what it is."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def _page(cards: Sequence[Card], closing: str, notes: Sequence[str], skipped: Sequence[tuple[str, str]]) -> str:
    findings = [finding for card in cards for finding in card.findings]
    return filled(
        "page.html.j2",
        cards=cards,
        closing=closing,
        notes=notes,
        skipped=skipped,
        version=VERSION,
        count=len(findings),
        severities=[s for s in ("error", "warning", "info") if any(f.severity == s for f in findings)],
        verdicts=sorted({card.verdict for card in cards if card.verdict}),
        rules=sorted({finding.rule for finding in findings}),
        packages=sorted({card.package for card in cards}),
        conditions=list(dict.fromkeys(name for card in cards if card.tried for name in card.outcomes)),
        marks=_MARKS,
        signs=_SIGNS,
    )


def filled(template: str, **values: Any) -> str:
    """A template with its values, of which all are escaped."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError:
        raise GradsmithError(MISSING) from None
    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(f"{FOLDER}/report/page"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["code"] = _code
    text: str = made.get_template(template).render(**values)
    return text

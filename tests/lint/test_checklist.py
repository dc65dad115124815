"""docs/checklist.md stays true: whatever it names exists, and no rule that can make a gradient wrong is missing from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradsmith.catalog import rules

DOCS = Path(__file__).parents[2] / "docs"
CHECKLIST = (DOCS / "checklist.md").read_text()
COMMANDS = {p.stem.removesuffix("_command") for p in (DOCS.parent / "src/gradsmith/cli").glob("*_command.py")}


def last_column(text: str) -> list[str]:
    rows = [line for line in text.splitlines() if line.startswith("|") and not re.match(r"\|\s*(-|item)", line)]
    return [row.rstrip(" |").rsplit(" | ", 1)[1] for row in rows]


def named(text: str) -> list[str]:
    return [name for cell in last_column(text) for name in re.findall(r"`([^`]+)`", cell)]


def test_the_page_has_rows() -> None:
    assert len(last_column(CHECKLIST)) > 30


@pytest.mark.parametrize("name", sorted(set(named(CHECKLIST))))
def test_every_name_is_a_rule_or_a_command(name: str) -> None:
    if name.startswith("gradsmith "):
        assert name.split()[1] in COMMANDS
    elif name != "file.py::Class":
        assert name in rules()


@pytest.mark.parametrize("family", ["contract", "silent", "numerics", "memory", "recurrent", "tests"])
def test_every_rule_of_these_families_is_on_the_page(family: str) -> None:
    missing = {r.name for r in rules().values() if r.family == family} - set(named(CHECKLIST))
    assert missing == set()


@pytest.mark.parametrize("page", ["checklist.md", "when_not_to.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text()):
        assert (DOCS / target).exists(), target


def test_when_not_to_names_rules_that_exist() -> None:
    text = (DOCS / "when_not_to.md").read_text()
    candidates = set(re.findall(r"`([a-z]+(?:-[a-z0-9]+)+)`", text))
    assert candidates
    assert candidates <= set(rules())

"""Each rule's own examples, through the source lens, and what its edits make of them."""

from __future__ import annotations

import ast

import pytest

from gradsmith.catalog import Rule, rules
from gradsmith.linting import lint_source
from gradsmith.source.edits import apply

LINTING = [rule for rule in rules().values() if "lint" in rule.lenses]
named = pytest.mark.parametrize("rule", LINTING, ids=lambda rule: rule.name)


@named
def test_bad_shows_its_own_rule_and_no_other(rule: Rule) -> None:
    report = lint_source(rule.bad, debug=True)
    found = {f.rule for f in report.findings}
    assert rule.name in found
    assert {f.rule for f in report.at_least("warning")} <= {rule.name}
    assert report.skipped == []


@named
def test_good_is_free_of_errors_and_warnings(rule: Rule) -> None:
    assert lint_source(rule.good, debug=True).at_least("warning") == []


@named
def test_messages_speak_the_users_language(rule: Rule) -> None:
    for finding in lint_source(rule.bad).findings:
        text = f"{finding.message} {finding.advice}".lower()
        assert "cotangent" not in text
        assert "kink" not in text
        assert finding.message.endswith((".", "?"))
        assert finding.advice
        assert finding.line is not None
        assert finding.snippet == rule.bad.split("\n")[finding.line - 1]
        if rule.lint:
            assert finding.function is not None
            assert finding.function in finding.message


@pytest.mark.parametrize("rule", [rule for rule in LINTING if rule.fixable], ids=lambda rule: rule.name)
def test_edits_end_clean(rule: Rule) -> None:
    text = rule.bad
    for _ in range(5):
        edits = [edit for finding in lint_source(text).findings for edit in finding.edits]
        if not edits:
            break
        text = apply(text, edits)
    ast.parse(text)
    assert text != rule.bad
    assert [f.rule for f in lint_source(text).at_least("warning")] == []
    assert not [edit for finding in lint_source(text).findings for edit in finding.edits]

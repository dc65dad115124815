"""Tests generated from the catalogue: every BAD shows exactly its own rule, every GOOD is clean."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import gradsmith.rules
from gradsmith import lint_source
from gradsmith.catalog import FAMILIES, HEADINGS, Rule, rules
from gradsmith.codes import OURS, begins
from gradsmith.findings import Finding, Report
from gradsmith.rule_shape import fault

RULES = list(rules().values())
LINTED = [r for r in RULES if "lint" in r.lenses]
# Kernels run in workers only: tests/kernels holds their examples to the same.
PROBED = [r for r in RULES if r.probe is not None and r.family != "kernels"]
LEDGER = Path(gradsmith.rules.__file__).parent / "codes.txt"


def named(chosen: list[Rule]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("rule", chosen, ids=lambda rule: rule.name)


def serious(findings: list[Finding]) -> set[str]:
    return {f.rule for f in findings if f.severity in ("error", "warning")}


def _is_gone(rule: Rule) -> bool:
    """Whether the defect is PyTorch's own, and the installed version has it no more."""
    numbers = [tuple(map(int, text.split(".")[:2])) for text in (version("torch"), rule.fixed_in or "99.0")]
    return numbers[0] >= numbers[1]


@named([r for r in RULES if r in LINTED or r in PROBED])
def test_bad_shows_exactly_its_own_rule_in_the_source(rule: Rule) -> None:
    report = lint_source(rule.bad)
    assert not report.skipped
    assert rule.name in {f.rule for f in report.findings} or rule not in LINTED
    assert serious(report.findings) <= {rule.name}


@named(PROBED)
@pytest.mark.parametrize("lenses", ["both", pytest.param("check", marks=pytest.mark.deep)])
def test_bad_shows_exactly_its_own_rule_when_run_in_one_sentence(
    rule: Rule, lenses: str, check_source: Callable[..., Report]
) -> None:
    """Whether the source is read, too, or not: one finding for each defect; none for one that this torch is free of."""
    report = check_source(rule.bad, level=rule.level, lint=lenses == "both")
    mine = [f for f in report.findings if f.rule == rule.name]
    assert any("check" in f.lenses for f in mine) != _is_gone(rule)
    assert all(set(f.lenses) <= set(rule.lenses) for f in mine)
    assert serious(report.findings) <= {rule.name}
    for finding in (f for f in report.findings if "check" in f.lenses):
        assert finding.function and finding.function in finding.message
        assert not re.search(r"\b(cotangent|kink)", finding.message + (finding.advice or ""), re.I)
        assert "\n" not in finding.message
        assert finding.advice or finding.rule in ("wrong-gradient", "forward-raised")


@named(RULES)
def test_good_is_clean_in_the_source(rule: Rule) -> None:
    report = lint_source(rule.good)
    assert not report.skipped
    assert not serious(report.findings), [f.message for f in report.findings]


@named(PROBED)
@pytest.mark.parametrize("level", ["its own", pytest.param("standard", marks=pytest.mark.deep)])
def test_good_is_clean_and_verified_when_run(rule: Rule, level: str, check_source: Callable[..., Report]) -> None:
    own = rule.level if rule.level != "deep" else "standard"
    report = check_source(rule.good, level=own if level == "its own" else level, lint=True)
    assert not serious(report.findings), [f.message for f in report.findings]
    assert [s.verdict for s in report.subjects] == ["verified"] * len(report.subjects), [
        s.reason for s in report.subjects
    ]


@named(RULES)
def test_the_page_has_every_heading_and_says_something(rule: Rule) -> None:
    assert len(rule.title) > 10
    for heading in HEADINGS:
        assert len(rule.section(heading)) >= 10, heading
    assert not re.search(r"\b(cotangent|kink)", rule.title + rule.page, re.I)


@named(RULES)
def test_a_rule_cites_a_thread_or_a_measurement(rule: Rule) -> None:
    references = rule.section("References")
    assert "https://" in references or "easured" in references or "survey" in references


@named(RULES)
def test_the_code_belongs_to_the_family_and_the_examples_parse(rule: Rule) -> None:
    assert begins(rule.code, FAMILIES[rule.family][0])
    assert len(rule.code) - len(rule.letters) == OURS[rule.letters]
    assert rule.lenses
    ast.parse(rule.bad)
    ast.parse(rule.good)
    assert rule.bad != rule.good


@named(RULES)
def test_a_rule_has_the_shape_that_is_asked_of_other_packages(rule: Rule) -> None:
    name = f"gradsmith.rules.{rule.family}.{rule.name.replace('-', '_')}"
    assert fault(importlib.import_module(name)) == ""


@named(RULES)
def test_a_deprecated_rule_says_what_replaces_it(rule: Rule) -> None:
    assert bool(rule.replaced_by) == (rule.state == "deprecated")
    assert not rule.replaced_by or rules()[rule.replaced_by].state == "stable"


@named(RULES)
def test_symptoms_are_rules(rule: Rule) -> None:
    assert set(rule.explains) <= set(rules())
    assert rule.name not in rule.explains


def test_codes_are_unique_and_never_reused() -> None:
    ledger = dict(line.split() for line in LEDGER.read_text().splitlines() if line and not line.startswith("#"))
    codes = [rule.code for rule in RULES]
    assert len(codes) == len(set(codes))
    assert {rule.code: rule.name for rule in RULES}.items() <= ledger.items(), "append new codes to rules/codes.txt"


def test_no_rule_imports_torch_at_module_level() -> None:
    for path in Path(gradsmith.rules.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "torch" for name in names), path

"""Generated from the catalogue: every BAD shows its rule in a profile, every GOOD has no warning about speed or memory.

Nothing here depends on how long anything takes: a rule must see its defect on a busy machine, too. How severe it is
depends on measured shares, so a BAD may show its rule as information.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from gradsmith.catalog import Rule, rules
from tests.profiling.subjects import profiles

FAMILIES = ("speed", "memory", "recurrent")
TIMED = {"slower-than-autograd", "slower-than-compile", "builtin-cell"}  # compare two clocks; see the deep tests below
PROFILED = [rule for rule in rules().values() if rule.profile is not None]
COUNTED = [rule for rule in PROFILED if rule.name not in TIMED]


def named(chosen: list[Rule]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("rule", chosen, ids=lambda rule: rule.name)


@named(COUNTED)
def test_bad_shows_its_rule_in_a_profile(rule: Rule, load: Callable[[str], ModuleType]) -> None:
    findings = [f for p in profiles(load(rule.bad)) for f in p.findings]
    assert rule.name in {f.rule for f in findings}
    assert {f.rule for f in findings if f.severity == "warning"} - TIMED <= {rule.name}
    mine = next(f for f in findings if f.rule == rule.name)
    assert mine.lenses == ("profile",)
    assert mine.line is not None and mine.advice
    assert mine.message.endswith(".")


@named(PROFILED)
def test_good_has_no_warning(rule: Rule, load: Callable[[str], ModuleType]) -> None:
    findings = [f for p in profiles(load(rule.good)) for f in p.findings]
    families = {r.name: r.family for r in rules().values()}
    warned = [f for f in findings if f.severity == "warning" and families[f.rule] in FAMILIES and f.rule not in TIMED]
    assert not warned, [f.message for f in warned]


def test_rules_that_compare_clocks_stay_silent_where_there_is_nothing_to_compare(
    load: Callable[[str], ModuleType],
) -> None:
    """A plain callable has no other way to be computed, and is no layer."""
    module = load(
        "import torch\n\n\ndef double(x):\n    return 2 * x\n\n\n"
        "gradsmith_inputs = {'double': lambda: (torch.randn(8, requires_grad=True),)}\n"
    )
    assert not TIMED & {f.rule for p in profiles(module) for f in p.findings}


@pytest.mark.deep
@named([rule for rule in PROFILED if rule.name in {"slower-than-autograd", "builtin-cell"}])
def test_rules_that_compare_clocks_see_their_bad(rule: Rule, load: Callable[[str], ModuleType]) -> None:
    findings = [f for p in profiles(load(rule.bad), budget=4.0) for f in p.findings]
    assert rule.name in {f.rule for f in findings}


@pytest.mark.deep
def test_the_compiler_is_faster_than_the_bad_example_and_not_than_the_good_one(
    load: Callable[[str], ModuleType],
) -> None:
    rule = rules()["slower-than-compile"]
    (bad,) = profiles(load(rule.bad), budget=4.0, try_remedies=True)
    (found,) = [f for f in bad.findings if f.rule == rule.name]
    assert found.severity == "warning" and "torch.compile of the plain forward" in found.message
    (good,) = profiles(load(rule.good), budget=4.0, try_remedies=True)
    assert rule.name not in {f.rule for f in good.findings}
    assert any(r.name == "torch.compile of it" and r.gain is not None for r in good.remedies)


def test_the_compiler_is_only_asked_when_that_is_wanted(load: Callable[[str], ModuleType]) -> None:
    (profile,) = profiles(load(rules()["slower-than-compile"].bad), budget=0.5, growth=False)
    assert profile.remedies == []
    assert "slower-than-compile" not in {f.rule for f in profile.findings}

"""`check` alone, at level standard, names every broken file's rule: as a finding of its own, not as a symptom."""

from __future__ import annotations

from pathlib import Path

import pytest
from gallery_files import broken_files, expected_rules, load

from gradsmith.catalog import rules
from gradsmith.checking.options import Options
from gradsmith.checking.run import examine_supplied
from gradsmith.lab import resolve

EXPECTED = [(path, name) for path in broken_files() for name in expected_rules(path) if rules()[name].probe is not None]
# What a quick level names it names at standard; these are the ones that only the conditions show, or that were folded.
SAMPLE = ("exp_output_on_ctx", "square_nonlinear_backward", "dropout_redrawn", "block_drops_remainder")


def named(path: Path) -> set[str]:
    module, found = load(path), set()
    for name in module.gradsmith_inputs:
        report = examine_supplied(resolve(getattr(module, name)), Options(level="standard", lint=False), module)
        found |= {f.rule for f in report.findings}
    return found


def test_there_are_enough_of_them() -> None:
    assert len(EXPECTED) >= 40


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param(path, rule, id=f"{path.stem}-{rule}", marks=[] if path.stem in SAMPLE else pytest.mark.deep)
        for path, rule in EXPECTED
    ],
)
def test_check_names_the_rule_itself(path: Path, rule: str) -> None:
    assert rule in named(path)

"""Edits: every fixable rule's BAD ends clean; files keep what was not meant."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import Rule, rules
from gradsmith.findings import Report
from gradsmith.linting.fixing import fix, fix_source

FIXABLE = [rule for rule in rules().values() if rule.fixable]
BAD = rules()["inplace-grad"].bad
named = pytest.mark.parametrize("rule", FIXABLE, ids=lambda rule: rule.name)


def fixed(source: str) -> str:
    changes = fix_source(source, unsafe=True, debug=True)
    return changes.files[0].after.decode() if changes.files else source


@named
def test_a_fixed_bad_lints_clean_parses_and_stays(rule: Rule) -> None:
    text = fixed(rule.bad)
    assert text != rule.bad
    ast.parse(text)
    left = gs.lint_source(text, debug=True)
    assert rule.name not in [f.rule for f in left.findings]
    assert left.at_least("warning") == []
    assert fixed(text) == text


@named
def test_a_fixed_bad_passes_the_runtime_lens(rule: Rule, check_source: Callable[..., Report]) -> None:
    if rule.probe is None:
        pytest.skip("no runtime lens")
    if rule.family == "kernels":
        pytest.skip("kernels run in workers only: tests/kernels/test_memory_rules.py")
    report = check_source(fixed(rule.bad), level=rule.level)
    assert rule.name not in [f.rule for f in report.findings]
    assert report.at_least("warning") == []


def test_comments_formatting_newlines_and_encoding_stay(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    text = BAD.replace("mul_(2)", "mul_( 2 )   # größer").replace("\n", "\r\n")
    path.write_bytes(("# -*- coding: latin-1 -*-\r\n" + text).encode("latin-1"))
    changes = fix(path)
    assert changes.count == 1
    after = path.read_bytes().decode("latin-1")
    assert "mul_( 2 )   # größer\r\n" in after
    assert "\n" not in after.replace("\r\n", "")
    removed = [line for line in changes.diff().splitlines() if line.startswith("-") and not line.startswith("---")]
    assert removed == []


def test_nothing_is_written_without_a_wish(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(BAD)
    changes = fix(tmp_path, write=False)
    assert path.read_text() == BAD
    assert changes.report.findings == []
    (tmp_path / "patch").write_text(changes.diff().replace(str(tmp_path).lstrip("/") + "/", ""))
    subprocess.run(["git", "apply", "patch"], cwd=tmp_path, check=True)
    assert path.read_bytes() == changes.files[0].after


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text(BAD)
    real.chmod(0o640)
    link.symlink_to(real)
    fix(link)
    assert link.is_symlink()
    assert ".clone()" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_unsafe_edits_wait_for_permission() -> None:
    unsafe = [r for r in FIXABLE if any(f.applicability == "unsafe" for f in gs.lint_source(r.bad).findings)]
    for rule in unsafe:
        kept = fix_source(rule.bad).report
        assert rule.name in [f.rule for f in kept.findings]
        assert "with --fix --unsafe-fixes" in kept.closing_line()


def test_a_hidden_finding_is_not_fixed() -> None:
    text = BAD.replace("mul_(2)", "mul_(2)  # gradsmith: ignore[inplace-grad]")
    assert fix_source(text).files == []


def test_the_closing_words_count_what_can_be_fixed() -> None:
    assert gs.lint_source(BAD).closing_line().endswith("; 1 fixable with --fix")
    assert "fixable" not in gs.lint_source(rules()["inplace-grad"].good).closing_line()

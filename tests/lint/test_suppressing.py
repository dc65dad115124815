"""Comments that hide findings: written for the user, and reported when they hide nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import Rule, rules
from gradsmith.config import Config

BAD = rules()["inplace-grad"].bad
GOOD = rules()["inplace-grad"].good
LINTING = [rule for rule in rules().values() if "lint" in rule.lenses and not rule.after_others]


@pytest.mark.parametrize("rule", LINTING, ids=lambda rule: rule.name)
def test_add_ignore_silences_every_bad_and_changes_only_comments(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(rule.bad)
    changes = gs.add_ignores(path)
    assert changes.report.findings == []
    assert gs.lint(path).at_least("warning") == []
    assert ast.dump(ast.parse(path.read_text())) == ast.dump(ast.parse(rule.bad))
    assert f"# gradsmith: ignore[{rule.name}" in path.read_text() or ", " + rule.name in path.read_text()


def test_a_name_joins_the_comment_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(BAD.replace("mul_(2)", "mul_(2)  # gradsmith: ignore[return-count] kernel"))
    gs.add_ignores(path)
    assert "# gradsmith: ignore[return-count, inplace-grad] kernel" in path.read_text()


def test_a_comment_never_lands_in_a_string_or_after_a_backslash(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    written = BAD.replace("grad_output.mul_(2)", 'print("""\n{}\n""", \\\n            grad_output.mul_(2))')
    path.write_text(written)
    assert [f.rule for f in gs.lint(path).findings] == ["inplace-grad"]
    assert gs.add_ignores(path).report.findings == []
    assert ast.dump(ast.parse(path.read_text())) == ast.dump(ast.parse(written))


def test_an_ignore_that_hides_nothing_is_reported_and_removed() -> None:
    text = GOOD.replace("return grad_input", "return grad_input  # gradsmith: ignore[unpack-count]")
    (finding,) = gs.lint_source(text).findings
    assert finding.rule == "unused-ignore"
    after = gs.fix_source(text).files[0].after.decode()
    assert after == GOOD


def test_a_used_ignore_is_not_reported() -> None:
    for comment in ("# gradsmith: ignore[inplace-grad]", "# gradsmith: ignore", "# noqa: GS202", "# noqa"):
        assert gs.lint_source(BAD.replace("mul_(2)", f"mul_(2)  {comment}")).findings == []


def test_what_may_be_meant_for_the_runtime_lens_is_only_info() -> None:
    text = GOOD.replace("return grad_input", "return grad_input  # gradsmith: ignore[inplace-grad]")
    assert [(f.rule, f.severity) for f in gs.lint_source(text).findings] == [("unused-ignore", "info")]


@pytest.mark.parametrize(
    "comment",
    [
        "# gradsmith: ignore[wrong-gradient]",  # no source lens: lint cannot know
        "# noqa",
        "# noqa: E501",
        "# noqa: E501, GS202",
        "# gradsmith: ignore[GS2]",
        "# gradsmith: surrogate[straight-through]",
    ],
)
def test_comments_that_are_not_ours_to_judge(comment: str) -> None:
    assert gs.lint_source(GOOD.replace("return grad_input", f"return grad_input  {comment}")).findings == []


def test_only_rules_that_ran_are_judged() -> None:
    text = GOOD.replace("return grad_input", "return grad_input  # gradsmith: ignore[unpack-count]")
    assert gs.lint_source(text, select=["unused-ignore", "inplace-grad"]).findings == []
    assert gs.lint_source(text, "ops.py", config=Config(per_file_ignores={"ops.py": ("unpack-count",)})).findings == []


def test_an_unknown_name_gets_the_nearest_one() -> None:
    text = BAD.replace("mul_(2)", "mul_(2)  # gradsmith: ignore[inplace-gard]")
    found = {f.rule: f.message for f in gs.lint_source(text).findings}
    assert set(found) == {"inplace-grad", "unused-ignore"}
    assert "did you mean 'inplace-grad'" in found["unused-ignore"]


def test_words_inside_a_string_are_no_comment() -> None:
    text = GOOD + '\nEXAMPLE = """\nx  # gradsmith: ignore[unpack-count]\n"""\n'
    assert gs.lint_source(text).findings == []

"""The report fits the terminal: no line beyond its width, no word broken, errors first, each verdict once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradsmith import lint
from gradsmith.catalog import rules
from gradsmith.findings import Finding, Report, Subject
from gradsmith.report import render
from gradsmith.report.layout import cut, wrapped

ROOT = Path(__file__).parents[2]
WIDTHS = [60, 80, 100, 160]


@pytest.fixture(scope="module")
def broken() -> Report:
    report = lint([str(ROOT / "examples" / "broken")])
    conditions = {"vmap": "fails: RuntimeError", "jacrev": "not supported: no rule", "compile": "works"}
    conditions |= {f"condition {n}": "not tried: no two inputs are alike" for n in range(12)}
    report.subjects += [
        Subject("Swish", "refuted", "wrong-gradient", inputs_from="declared", conditions=conditions),
        *(Subject(f"Layer{n}", "unverified", f"reason {n % 12} " + "and more " * 20) for n in range(30)),
    ]
    return report


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\", "", text)


@pytest.mark.parametrize("color", [False, True], ids=["plain", "colour"])
@pytest.mark.parametrize("verbose", [False, True], ids=["short", "verbose"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int, verbose: bool, color: bool, broken: Report) -> None:
    text = plain(render(broken, "full", color=color, width=width, verbose=verbose))
    links = ("-->", "see:")  # a path and an address stay in one piece, so that a click finds them
    assert [line for line in text.splitlines() if len(line) > width and not line.strip().startswith(links)] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_is_broken(width: int, broken: Report) -> None:
    words = set(" ".join(f"{f.message} {f.advice}" for f in broken.findings).split())
    text = plain(render(broken, "full", width=width, verbose=True))
    shown = set(text.split())
    assert {word for word in words if len(word) < width - 12} <= shown


def test_colour_and_links_change_no_character(broken: Report) -> None:
    painted = render(broken, "full", color=True, width=80, links=True)
    assert plain(painted) == render(broken, "full", width=80)
    pages = {Path(p) for p in re.findall(r"\x1b\]8;;file://([^\x1b]+)\x1b", painted)}
    assert pages and all(page.is_file() and page.parents[1].name == "rules" for page in pages)


def test_errors_come_first_and_remarks_are_counted(broken: Report) -> None:
    heads = re.findall(r"^(error|warning|info)\[", render(broken, "full", width=100), re.M)
    assert heads == sorted(heads, key=["error", "warning", "info"].index)
    infos = [f.rule for f in broken.findings if f.severity == "info"]
    assert heads.count("info") == len(set(infos)) < len(infos)
    assert re.findall(r"^(error|warning|info)\[", render(broken, "full", verbose=True), re.M).count("info") == len(
        infos
    )


def test_the_summary_is_short_and_counts_reasons(broken: Report) -> None:
    summary = render(broken, "full", width=100).rstrip().rpartition("\n\n")[2].splitlines()
    assert summary[0] == "1 refuted, 30 not verified"
    assert len(summary) <= 10
    assert summary[1].startswith("  3 not verified: reason 0")
    assert summary[-1] == "  and 4 other reasons"


def test_only_conditions_that_do_not_work_are_listed(broken: Report) -> None:
    short = render(broken, "full", width=100)
    assert "fails under     vmap" in short
    assert "no support for  jacrev" in short
    assert "works under" not in short and "not tried" not in short
    assert "works under" in render(broken, "full", width=100, verbose=True)


def test_a_repair_is_a_diff() -> None:
    report = lint([str(ROOT / "examples" / "broken" / "clip_inplace_grad.py")])
    text = render(report, "full", width=100)
    assert "+         grad_output = grad_output.clone()" in text
    assert "proposed change (--fix" in text


def test_a_repair_shows_no_line_that_stays(tmp_path: Path) -> None:
    source = rules()["save-in-backward"].bad
    path = tmp_path / "ops.py"
    path.write_text(source)
    text = render(lint([str(path)]), "full", width=100)
    removed = [line for line in text.splitlines() if re.match(r" +\d+ - ", line)]
    assert [line.split(" - ")[1].strip() for line in removed] == ["ctx.save_for_backward(grad_output, x)"]


def test_a_finding_about_a_class_shows_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text("import torch\n\n\nclass Double(torch.autograd.Function):\n    pass\n")
    finding = Finding("it is wrong", "wrong-gradient", "GS201", "error", path=str(path), line=4, column=0)
    assert "  4 | class Double(torch.autograd.Function):" in render(Report(findings=[finding]), "full", width=80)


def test_a_long_line_of_code_is_cut_around_its_caret() -> None:
    text, left = cut("x = " + "a + " * 100 + "WRONG + b", 40, 404)
    assert len(text) <= 40 and "WRONG" in text and text.startswith("…")
    assert text[404 - left :].startswith("WRONG")
    assert cut("short", 40, 3) == ("short", 0)


def test_a_paragraph_keeps_its_indentation() -> None:
    lines = wrapped("one two three four five six", 12, first="  a: ", indent="     ")
    assert lines == ["  a: one two", "     three", "     four", "     five", "     six"]


def test_a_finding_without_a_file_is_shown() -> None:
    text = render(Report(findings=[Finding("it is wrong", "wrong-gradient", "GS201", "error")]), "full", width=60)
    assert text.startswith("error[GS201 wrong-gradient] it is wrong")


@pytest.mark.parametrize("columns", ["60", "100"])
def test_the_command_asks_the_terminal(columns: str) -> None:
    import os

    command = [sys.executable, "-m", "gradsmith", "lint", "examples/broken/clip_inplace_grad.py"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "COLUMNS": columns}, capture_output=True, text=True, check=False
    )
    longest = max(len(line) for line in done.stdout.splitlines())
    assert int(columns) - 25 < longest <= int(columns)

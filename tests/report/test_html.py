"""The HTML report as a file: what is in it, and that nothing of the user's gets out of its place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

import gradsmith as gs
from gradsmith.findings import Finding, Report, Subject
from gradsmith.report import FORMATS, format_for, render

from .pages import HOSTILE, hostile, real

BRANCHES = (
    "class F:\n    @staticmethod\n    def forward(ctx, x):\n        if x.numel() > 9:\n            return 2 * x\n"
    "        return x\n"
)


class Outline(HTMLParser):
    """Tags, ids and words of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.links += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def report() -> Report:
    return real()


def test_verdict_finding_source_and_script_are_there(report: Report) -> None:
    page = render(report, "html")
    words = " ".join("".join(Outline(page).words).split())
    for told in ("refuted", "verified", "wrong-gradient", "grad_y[:, 1] = 0", "Plain PyTorch", "Inputs used (given)"):
        assert told in words, told


def test_the_gradients_are_drawn_side_by_side_with_the_wrong_element_marked(report: Report) -> None:
    (finding,) = [f for f in report.findings if f.rule == "wrong-gradient"]
    gradients = finding.evidence["gradients"]
    assert gradients["wrong"][1] == 1
    assert all(row[1] == 0 for row in gradients["claimed"])
    assert all(row[1] != 0 for row in gradients["true"])
    page = render(Report.from_dict(report.to_dict()), "html")
    assert "Heat maps of the gradient (4 x 3): claimed, true, and difference" in page
    assert page.count("<svg") == 1 + 3  # and those of the profile


def test_lines_and_sides_are_marked_on_the_source(tmp_path: Path) -> None:
    file = tmp_path / "ops.py"
    file.write_text(BRANCHES)
    points = [
        {"line": n, "sort": "line", "what": "", "side": "ran", "phase": "", "state": state}
        for n, state in ((4, "judged"), (5, "never"), (6, "ran"))
    ]
    sides = [("x.numel() > 9", "true", "never"), ("x.numel() > 9", "false", "judged")]
    points += [{"line": 4, "sort": "test", "what": w, "side": s, "phase": "", "state": st} for w, s, st in sides]
    figures = {"lines": 3, "lines reached": 2, "sides": 2, "sides reached": 1, "not reached": ["line 5 never ran"]}
    subject = Subject("F", "verified", path=str(file), line=2, coverage={**figures, "points": points})
    shown = "".join(Outline(render(Report(subjects=[subject]), "html")).words)
    assert "Coverage: 2 of 3 lines, 1 of 2 sides of conditions" in shown
    told = [
        "4 +     if x.numel() > 9:",
        "x.numel() > 9: ! true   + false",
        "5 !         return 2 * x",
        "6 ~     return x",
    ]
    rows = [row.strip() for row in shown.split("\n")]
    assert [row for row in rows if row in told] == told
    assert any(row.endswith("3   def forward(ctx, x):") for row in rows)
    file.write_text("# a new first line\n" + BRANCHES)
    moved = "".join(Outline(render(Report(subjects=[subject]), "html")).words)
    assert "if x.numel() > 9:" not in moved  # the lines are others by now
    assert "line 5 never ran" in moved


def test_an_access_outside_a_tensor_is_drawn_on_it() -> None:
    access: dict[str, object] = {"shape": [5, 37], "elements": 185, "touched": [[148, 200], [10**9, 10**9]]}
    access["words"] = "program (2, 0, 0) touches element [185]"
    finding = Finding(
        "The kernel fill, which Fill launches, stores outside x_ptr of shape (5, 37).",
        rule="out-of-bounds-store",
        code="GSK02",
        severity="error",
        evidence={"access": access},
    )
    page = render(Report([finding]), "html")
    assert "The memory of 5 x 37 elements, 37 in a row: program (2, 0, 0) touches element [185]." in page
    starts = {int(text.replace("\u2212", "-")) for text in re.findall(r">\s*(-?\d+)</text>", page)}
    assert {111, 148, 185, 10**9 // 37 * 37} <= starts


def test_nothing_is_loaded_from_elsewhere(report: Report) -> None:
    page = render(report, "html")
    outline = Outline(page)
    assert "default-src 'none'" in page
    assert all(link.startswith(("#", "data:")) for link in outline.links), outline.links
    assert not re.search(r"url\((?!#)|@import", page)
    assert len(outline.ids) == len(set(outline.ids))


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    outline = Outline(render(hostile(tmp_path), "html"))
    assert outline.tags.count("script") == 1
    assert outline.tags.count("style") == 1
    assert "img" not in outline.tags
    assert "".join(outline.words).count(HOSTILE) >= 18
    cell = Outline(hostile(tmp_path)._repr_html_())
    assert not {"script", "img", "iframe", "link"} & set(cell.tags) and "".join(cell.words).count(HOSTILE) >= 12


def test_what_stands_between_backticks_is_code_and_stays_text() -> None:
    finding = Finding("write `a < b` or `</code>`, not `", rule="r", code="GS1", severity="info")
    told = Finding("write `a < b` or `</code>`", rule="r", code="GS1", severity="info")
    page = render(Report([finding, told]), "html")
    assert "<code>a &lt; b</code> or <code>&lt;/code&gt;</code>" in page
    assert page.count("<code>") == page.count("</code>") == 2


def test_a_file_name_and_a_notebook_choose_it(report: Report, tmp_path: Path) -> None:
    assert "html" in FORMATS
    assert format_for("report.html") == format_for("r.htm") == "html"
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    cell = Outline(report._repr_html_())
    assert {"details", "summary", "svg"} <= set(cell.tags) and not {"script", "iframe", "link"} & set(cell.tags)


def test_the_command_writes_it(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(
        "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\n"
        "    @staticmethod\n    def backward(ctx, grad_output):\n        grad_output *= 2\n        return grad_output\n"
    )
    call = [sys.executable, "-m", "gradsmith", "lint", "ops.py", "--output", "report.html"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "inplace-grad" in (tmp_path / "report.html").read_text()


def test_the_command_opens_it(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text("import torch\n")
    (tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    (tmp_path / "browser").chmod(0o755)
    surroundings = {**os.environ, "BROWSER": f"{tmp_path}/browser %s", "GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    for more, page in ([], tmp_path / "cache" / "pages" / "report.html"), (["--output", "r.html"], tmp_path / "r.html"):
        call = [sys.executable, "-m", "gradsmith", "lint", "ops.py", "--open", *more]
        subprocess.run(call, cwd=tmp_path, env=surroundings, capture_output=True, check=True)
        assert (tmp_path / "opened").read_text().strip() == page.as_uri()
        assert page.read_text().startswith("<!doctype html>")


def test_an_empty_report_is_a_page() -> None:
    assert "nothing to check" in render(Report(), "html")


def test_a_profile_stands_with_the_verdict_of_its_subject(report: Report) -> None:
    (card,) = re.findall(r'<section class="card" id="s0".*?</section>', render(report, "html"), re.DOTALL)
    for told in (
        "refuted",
        "Profile: ",
        "Where the time goes, by line",
        "Growth with the size",
        "Saved for backward",
    ):
        assert told in card, told
    assert "where the time goes, by line" in render(report, "full")
    assert report.subjects[0].measured["profile"]["by_line"] and not report.subjects[1].measured.get("profile")


@pytest.mark.deep
def test_check_profiles_what_it_checked(tmp_path: Path) -> None:
    source = (
        Path(__file__)
        .with_name("pages.py")
        .read_text()
        .partition("def real()")[0]
        .replace("import gradsmith as gs\n", "")
    )
    (tmp_path / "ops.py").write_text(source)
    code = "torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)"
    call = [
        sys.executable,
        "-m",
        "gradsmith",
        "check",
        "ops.py",
        "--profile",
        "--inputs",
        code,
        "--output",
        "report.html",
    ]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "wrong-gradient" in page and "Where the time goes, by line" in page


def test_a_profile_has_bars_by_line_and_what_is_saved(tmp_path: Path) -> None:
    from .pages import Product

    x = torch.randn(64, 64, requires_grad=True)
    profile = gs.profile(Product, x, x.detach().clone().requires_grad_(), budget=0.2, growth=False)
    profile.save(tmp_path / "profile.html")
    page = (tmp_path / "profile.html").read_text()
    for told in ("Where the time goes, by line", "Saved for backward", "share of the time"):
        assert told in page, told
    assert page.count("<svg") == 2

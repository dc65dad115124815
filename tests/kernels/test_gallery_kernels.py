"""The kernels of the gallery are verified on a machine without a GPU; their broken twins are named, memory at the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import find
from gradsmith.findings import Report

pytest.importorskip("triton")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RIGHT = sorted((EXAMPLES / "gallery" / "kernels").glob("*.py"))
BROKEN = sorted((EXAMPLES / "broken" / "kernels").glob("*.py"))


def expected(path: Path) -> str:
    found = re.search(r"# expect: ([\w-]+)", path.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


# One of each rule; the rest is deep.
SAMPLE = list({expected(path): path for path in BROKEN}.values())


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest) -> Report:
    wanted = {item.callspec.params["path"] for item in request.session.items if item.path == request.path}
    return gs.check_paths(*sorted(wanted), level="quick")


@pytest.mark.parametrize("path", RIGHT, ids=lambda p: p.stem)
def test_a_right_kernel_is_verified(path: Path, report: Report) -> None:
    (subject,) = [s for s in report.subjects if s.path == str(path)]
    assert subject.verdict == "verified", subject.reason
    assert [f.rule for f in report.findings if f.path == str(path) and f.severity != "info"] == []


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[] if p in SAMPLE else [pytest.mark.deep]) for p in BROKEN]
)
def test_a_broken_twin_is_named(path: Path, report: Report) -> None:
    mine = [f for f in report.findings if f.path == str(path) and f.severity == "error"]
    named = [f for f in mine if f.rule == expected(path)]
    assert named, [(f.rule, f.line, f.message) for f in mine]
    if find(expected(path)).family == "kernels":
        assert all("tl." in path.read_text().splitlines()[f.line - 1] or "//" in f.snippet for f in named if f.line)

"""gradsmith's own source passes its lint, and all places name one version. `make self-check` runs check and profile on all the rest."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import rules

ROOT = Path(__file__).parents[1]


def tool(name: str) -> object:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_our_own_functions_have_neither_error_nor_warning() -> None:
    report = gs.lint([str(ROOT / "src" / "gradsmith")])
    assert report.functions > 20
    assert [f"{f.path}:{f.line}: {f.rule}" for f in report.at_least("warning")] == []


def test_the_gallery_has_no_error() -> None:
    report = gs.lint([str(ROOT / "examples" / "gallery")])
    assert report.functions > 50
    assert [f"{f.path}:{f.line}: {f.rule}" for f in report.errors] == []


@pytest.mark.parametrize("name", ["retain-graph", "dropped-hook", "gradcheck-unused"])
def test_code_in_a_string_is_a_text(name: str) -> None:
    bad = rules()[name].bad
    assert [f.rule for f in gs.lint_source(bad).findings if f.rule == name]
    assert gs.lint_source(f'import torch\nEXAMPLE = """{bad}"""\n').findings == []


def test_all_places_name_one_version() -> None:
    assert list(tool("release_check").versions()) == []  # type: ignore[attr-defined]


def test_functions_of_the_documents_have_no_error() -> None:
    """Read only; that they are verified takes a run, and is a deep test."""
    pages = [page for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if page.name != "myths.md"]
    functions_in = tool("self_check").functions_in  # type: ignore[attr-defined]
    sources = [source for page in pages for source in functions_in(page.read_text(encoding="utf-8")).values()]
    assert len(sources) >= 5
    assert [f"{f.message}" for source in sources for f in gs.lint_source(source).errors] == []


@pytest.mark.deep
@pytest.mark.parametrize("part", ["gallery", "templates", "ops", "pages", "documents"])
def test_what_we_hand_out_passes_all_three(part: str) -> None:
    before = list(sys.path)
    try:
        told = list(tool("self_check").PARTS[part]())  # type: ignore[attr-defined]
    finally:
        sys.path[:] = before
    assert [problem for _, problems in told for problem in problems] == []

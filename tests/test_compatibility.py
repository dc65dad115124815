"""docs/compatibility.md says what was run, and nothing else."""

from __future__ import annotations

import doctest
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gradsmith import torch_here

SCRIPT = Path(__file__).parents[1] / "tools" / "compatibility.py"


@pytest.fixture(scope="module")
def compatibility() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compatibility", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_examples_hold(compatibility: ModuleType) -> None:
    done = doctest.testmod(compatibility)
    assert done.attempted and not done.failed


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_cut_off_goes_on_where_it_was(
    compatibility: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """The first run is ended by its second test; the next one runs what is left, and counts all."""
    (tmp_path / "area").mkdir()
    cut = "import os, pathlib\n\ndef test_a(): pathlib.Path('ran').open('a').write('a')\n"
    cut += "def test_b(): os.path.exists('again') or os._exit(3)\ndef test_c(): assert False\n"
    (tmp_path / "area" / "test_x.py").write_text(cut)
    monkeypatch.setattr(compatibility, "ROOT", tmp_path)
    monkeypatch.setattr(compatibility, "_commit", lambda: "abc")
    (tmp_path / "tools").symlink_to(SCRIPT.parent)
    first = compatibility.tested(sys.executable, ["area"], tmp_path, 1)
    (tmp_path / "again").touch()
    then = compatibility.tested(sys.executable, ["area"], tmp_path, jobs)
    assert (first, then) == ({}, {"area": {"passed": 2, "failed": ["test_x::test_c"], "skipped": 0}})
    assert (tmp_path / "ran").read_text() == "a"


def test_an_environment_without_pytest_counts_as_not_run(
    compatibility: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compatibility, "_commit", lambda: "abc")
    assert compatibility.tested("false", ["tests/plugin"], tmp_path, 1) == {}


def test_the_page_is_what_the_script_writes(compatibility: ModuleType) -> None:
    assert compatibility.PAGE.read_text(encoding="utf-8") == compatibility.page(compatibility.kept())


def test_no_difference_and_no_failure_is_without_a_reason(compatibility: ModuleType) -> None:
    assert "ot explained" not in compatibility.page(compatibility.kept())


def test_the_oldest_and_the_newest_torch_that_are_claimed_were_tried(compatibility: ModuleType) -> None:
    tried = {tuple(compatibility._numbers(version)[:2]) for version in compatibility.kept()["torch"]}
    assert {torch_here.OLDEST, torch_here.TESTED} <= tried

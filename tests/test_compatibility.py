"""docs/compatibility.md says what was run, and nothing else."""

from __future__ import annotations

import ctypes
import doctest
import importlib
import importlib.util
import os
import shutil
import subprocess
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


NEEDS = "extern int first(void), second(void);\nint both(void) { return first() + second(); }\n"
VERSIONS = "libgone { global: first; second; };\n"


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("readelf") is None, reason="needs gcc and readelf")
@pytest.mark.parametrize("versioned", [True, False])
def test_an_empty_library_stands_in_for_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versioned: bool
) -> None:
    """As the wheels of torch are built: linked to a library that is found beside them, with and without versions of its names."""
    for file, source in (
        ("gone.c", "int first(void) { return 1; }\nint second(void) { return 2; }\n"),
        ("needs.c", NEEDS),
    ):
        (tmp_path / file).write_text(source)
    (tmp_path / "versions").write_text(VERSIONS)
    name = f"libgone.so.{versioned:d}"  # what a process has loaded under a name is not missing
    gone = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name, "gone.c"]
    needs = ["gcc", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-o", "libneeds.so", "needs.c", f"./{name}"]
    for call in ([*gone, *(["-Wl,--version-script=versions"] if versioned else [])], needs):
        subprocess.run(call, cwd=tmp_path, check=True)
    (tmp_path / name).unlink()
    monkeypatch.syspath_prepend(SCRIPT.parent)
    without_cuda = importlib.import_module("without_cuda")
    (missing,) = without_cuda.missing([tmp_path / "libneeds.so"]).items()
    without_cuda.write(*missing, tmp_path)
    assert missing[0] == name
    assert ctypes.CDLL(str(tmp_path / "libneeds.so"), os.RTLD_NOW).both() == 2 * 100

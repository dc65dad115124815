"""The cache: the same answer as without it, whatever happened to files, rules, settings and the cache itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.config import Config
from gradsmith.linting import cached
from gradsmith.linting.first_look import PARSE_WHOLE_BELOW
from gradsmith.linting.run import Run
from gradsmith.source import scan

BAD = rules()["inplace-grad"].bad
GOOD = rules()["inplace-grad"].good


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lint"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "ops.py").write_text(BAD)
    return folder


def names(folder: Path, **options: object) -> list[str]:
    with_memory = gs.lint(folder, cache=True, **options)  # type: ignore[arg-type]
    assert with_memory == gs.lint(folder, **options)  # type: ignore[arg-type]
    return [f.rule for f in with_memory.findings]


def test_nothing_is_read_again(cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = gs.lint(project, cache=True)

    def never(*_: object) -> None:
        raise AssertionError("linted again")

    monkeypatch.setattr(Run, "report", never)
    assert gs.lint(project, cache=True) == first
    assert first.findings
    with pytest.raises(AssertionError, match="linted again"):
        gs.lint(project)


def test_a_change_of_equal_length_in_the_same_instant_is_seen(cache: Path, project: Path) -> None:
    path = project / "ops.py"
    assert names(project) == ["inplace-grad"]
    before = path.stat()
    path.write_text(BAD.replace("mul_(2)", "mul (2)"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert names(project) == []


def test_files_that_come_and_go_are_seen(cache: Path, project: Path) -> None:
    assert names(project) == ["inplace-grad"]
    (project / "more.py").write_text(BAD)
    assert names(project) == ["inplace-grad"] * 2
    (project / "ops.py").unlink()
    assert names(project) == ["inplace-grad"]


def test_a_base_class_in_another_file_is_seen_to_change(cache: Path, project: Path) -> None:
    (project / "ops.py").write_text(
        BAD.replace("torch.autograd.Function", "Base").replace("import torch", "from base import Base")
    )
    (project / "base.py").write_text("import torch\nclass Base(torch.autograd.Function):\n    pass\n")
    assert names(project) == ["inplace-grad"]
    (project / "base.py").write_text("class Base:\n    pass\n")
    assert names(project) == []


def test_settings_have_answers_of_their_own(cache: Path, project: Path) -> None:
    assert names(project) == ["inplace-grad"]
    assert names(project, ignore=["inplace-grad"]) == []
    assert names(project, select=["contract"]) == []
    assert names(project, config=Config(per_file_ignores={"ops.py": ("silent",)})) == []
    assert names(project) == ["inplace-grad"]


def test_another_version_of_a_rule_is_another_key(cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cached._key([str(project)], (), (), False, None)
    rule = Path(gs.__file__).parent / "rules" / "silent" / "inplace_grad.py"
    stat = os.stat

    def touched(path: object, **options: object) -> object:
        found = stat(path, **options)  # type: ignore[arg-type, call-overload]
        if str(path) == str(rule):
            return os.stat_result((*found[:6], found.st_size + 1, *found[7:]))
        return found

    monkeypatch.setattr(os, "stat", touched)
    assert cached._key([str(project)], (), (), False, None) != before


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "other"])
def test_a_torn_file_is_not_believed(cache: Path, project: Path, damage: str) -> None:
    gs.lint(project, cache=True)
    (file,) = cache.glob("*.json")
    data = bytearray(file.read_bytes())
    if damage == "truncate":
        data = data[: len(data) // 2]
    elif damage == "flip":
        data[len(data) // 2] ^= 1
    elif damage == "empty":
        data = bytearray()
    file.write_bytes(b"{}" if damage == "other" else data)
    assert names(project) == ["inplace-grad"]


def test_the_folder_is_private_and_does_not_grow_for_ever(
    cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "KEEP", 3)
    for count in range(6):
        gs.lint(project, cache=True, select=["silent", f"GS{count}"])
    assert len(list(cache.iterdir())) == 3
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_is_done_without(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "file"))
    assert names(project) == ["inplace-grad"]


def test_xdg_is_honoured(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSMITH_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    gs.lint(project, cache=True)
    assert list((tmp_path / "xdg" / "gradsmith" / "lint").glob("*.json"))


def test_single_files_leave_nothing_behind(cache: Path, project: Path) -> None:
    gs.lint(project / "ops.py", cache=True)
    assert not cache.exists()


def test_in_a_large_folder_only_what_promises_something_is_read_again(
    cache: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "large.py").write_text("x = 1\n" * (PARSE_WHOLE_BELOW // 2))
    assert names(project) == ["inplace-grad"]
    (project / "ops.py").write_text(BAD + "\n")
    seen: list[scan.Seen] = []
    report = Run.report

    def watched(self: Run, sources: object) -> gs.Report:
        listed = list(sources)  # type: ignore[call-overload]
        seen.extend(listed)
        return report(self, listed)

    monkeypatch.setattr(Run, "report", watched)
    assert [f.rule for f in gs.lint(project, cache=True).findings] == ["inplace-grad"]
    assert {type(s).__name__ for s in seen if s.path.endswith("large.py")} == {"Unpromising"}
    assert {type(s).__name__ for s in seen if s.path.endswith("ops.py")} == {
        "SourceFile"
    }  # written just now: read at once, to know its bytes

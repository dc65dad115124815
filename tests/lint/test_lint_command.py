"""`gradsmith lint` as a process: what it prints where, what it writes, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradsmith.catalog import rules

BAD = rules()["inplace-grad"].bad
GOOD = rules()["inplace-grad"].good


def run(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradsmith", "lint", *arguments],
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GRADSMITH_CACHE_DIR": str(folder / ".cache")},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ops.py").write_text(BAD)
    return tmp_path


def test_fix_writes_and_says_so(folder: Path) -> None:
    done = run(folder, "--fix", "ops.py")
    assert done.returncode == 0
    assert "fixed 1 finding in 1 file" in done.stderr
    assert "all clean" in done.stdout
    assert ".clone()" in (folder / "ops.py").read_text()


def test_diff_shows_and_leaves_the_file(folder: Path) -> None:
    done = run(folder, "--diff", "ops.py")
    assert done.returncode == 1
    assert "+        grad_output = grad_output.clone()" in done.stdout
    assert "would fix 1 finding in 1 file" in done.stderr
    assert (folder / "ops.py").read_text() == BAD
    subprocess.run(["git", "apply", "-"], cwd=folder, input=done.stdout, text=True, check=True)
    assert run(folder, "--diff", "ops.py").returncode == 0


def test_the_last_line_counts_what_can_be_fixed(folder: Path) -> None:
    assert run(folder).stdout.splitlines()[-1].endswith("; 1 fixable with --fix")


def test_stdin_has_the_name_it_is_given(folder: Path) -> None:
    done = run(folder, "-", "--stdin-filename", "pkg/mine.py", "--format", "json", given=BAD)
    assert done.returncode == 1
    assert [f["path"] for f in json.loads(done.stdout)["findings"]] == ["pkg/mine.py"]
    (folder / "pyproject.toml").write_text('[tool.gradsmith.per-file-ignores]\n"pkg/*" = ["inplace-grad"]\n')
    assert run(folder, "-", "--stdin-filename", "pkg/mine.py", given=BAD).returncode == 0
    assert run(folder, "-", given=BAD).returncode == 1


def test_stdin_fix_is_a_filter(folder: Path) -> None:
    done = run(folder, "-", "--fix", given=BAD)
    assert done.returncode == 0
    assert "grad_output = grad_output.clone()" in done.stdout
    assert done.stdout.replace("        grad_output = grad_output.clone()\n", "") == BAD
    assert run(folder, "-", "--fix", given=GOOD).stdout == GOOD


def test_statistics_count_by_rule(folder: Path) -> None:
    (folder / "more.py").write_text(BAD)
    done = run(folder, "--statistics")
    assert done.stdout.split()[:4] == ["2", "GS202", "inplace-grad", "error"]
    assert done.returncode == 1
    (statistic,) = json.loads(run(folder, "--statistics", "--format", "json").stdout)
    assert (statistic["count"], statistic["rule"], statistic["fixable"]) == (2, "inplace-grad", 2)


def test_add_ignore_ends_clean(folder: Path) -> None:
    done = run(folder, "--add-ignore")
    assert "wrote comments for 1 finding in 1 file" in done.stderr
    assert done.returncode == 0
    assert run(folder, "--fail-on", "warning").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-", "ops.py"), "cannot be combined"),
        (("--add-ignore", "--fix"), "--add-ignore writes comments"),
        (("--add-ignore", "-"), "--add-ignore writes comments"),
        (("nowhere.py", "--fix"), "no such file or folder"),
    ],
)
def test_wrong_calls_are_one_sentence(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run(folder, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_per_file_ignores_of_the_project(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.gradsmith.per-file-ignores]\n"ops.py" = ["silent"]\n')
    assert run(folder).returncode == 0
    assert run(folder, "--isolated").returncode == 1

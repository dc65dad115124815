"""The pre-commit hooks: their entries on files, and once with pre-commit itself."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gradsmith.catalog import rules

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
BAD = rules()["inplace-grad"].bad


def entries() -> dict[str, str]:
    """`id` and `entry` of every hook (the file is flat: no YAML reader is needed, nor installed)."""
    fields = [line.strip("- ").split(": ", 1) for line in HOOKS.read_text().splitlines() if ": " in line]
    names = [value for key, value in fields if key == "id"]
    return dict(zip(names, [value for key, value in fields if key == "entry"], strict=True))


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["gradsmith-lint", "gradsmith-fix"])
def test_the_entry_works_on_the_files_that_pre_commit_passes(name: str, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(BAD)
    (tmp_path / "other.py").write_text("x = 1\n")
    program, *rest = shlex.split(entries()[name])
    assert program == "gradsmith"
    done = run([sys.executable, "-m", program, *rest, "ops.py", "other.py"], tmp_path)
    fixes = name == "gradsmith-fix"
    assert done.returncode == (0 if fixes else 1), done.stderr
    assert ((tmp_path / "ops.py").read_text() != BAD) == fixes


@pytest.mark.deep
def test_pre_commit_itself_installs_and_runs_the_hook(tmp_path: Path) -> None:
    venv, project, source = tmp_path / "venv", tmp_path / "project", tmp_path / "gradsmith"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    installed = run([str(venv / "bin" / "pip"), "install", "-q", "pre-commit"], tmp_path)
    if installed.returncode:
        pytest.skip("pre-commit cannot be installed here")
    # pre-commit wants a repository: one commit of what a user would install.
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "src"):
        subprocess.run(["cp", "-r", str(ROOT / name), str(source)], check=True)
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for folder in (source, project):
        folder.mkdir(exist_ok=True)
        run(["git", "init", "-q", "."], folder)
    run(["git", "add", "."], source)
    assert run(["git", *who, "commit", "-qm", "release"], source).returncode == 0
    revision = run(["git", "rev-parse", "HEAD"], source).stdout.strip()
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: file://{source}\n  rev: {revision}\n  hooks:\n  - id: gradsmith-lint\n"
    )
    (project / "ops.py").write_text(BAD)
    run(["git", "add", "."], project)
    command = [str(venv / "bin" / "pre-commit"), "run", "--all-files"]
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "inplace-grad" in done.stdout
    (project / "ops.py").write_text(rules()["inplace-grad"].good)
    run(["git", "add", "."], project)
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

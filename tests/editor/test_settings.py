"""The settings in `editors/`, in the editors themselves where they are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradsmith as gs
from tests.editor.sources import SWISH

HERE = Path(__file__).parent
SETTINGS = HERE.parents[1] / "editors"
FINDINGS = {"intermediate-saved", "unused-save", "inplace-grad"}


def test_the_problem_matcher_reads_every_line_of_the_concise_format(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(SWISH)
    command = [sys.executable, "-m", "gradsmith", "lint", "--format", "concise", "--exit-zero", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    expected = [(f.line, (f.column or 0) + 1, f.severity, f.rule) for f in gs.lint([tmp_path / "ops.py"]).findings]
    for task in json.loads((SETTINGS / "vscode" / "tasks.json").read_text())["tasks"]:
        pattern = task["problemMatcher"]["pattern"]
        found = [m for line in printed.splitlines() if (m := re.match(pattern["regexp"], line))]
        named = [{name: m[group] for name, group in pattern.items() if name != "regexp"} for m in found]
        places = [(int(n["line"]), int(n["column"]), n["severity"], n["code"].split()[1]) for n in named]
        assert sorted(places) == sorted(expected) and {n["file"] for n in named} == {"ops.py"}


def test_the_settings_of_vs_code_start_the_server() -> None:
    settings = json.loads((SETTINGS / "vscode" / "settings.json").read_text())
    assert settings["glspc.server.command"] == "gradsmith" and settings["glspc.server.commandArguments"] == ["server"]


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_fixes_and_derives(tmp_path: Path) -> None:
    settings, script = SETTINGS / "neovim" / "gradsmith.lua", HERE / "in_neovim.lua"
    command = ["nvim", "--headless", "--clean", "-n", "-c", f"luafile {settings}", "-c", "edit ops.py"]
    answer = _asked([*command, "-c", f"luafile {script}"], tmp_path)
    assert {code for _, code, _ in answer["diagnostics"]} == FINDINGS
    assert "ignore here: # gradsmith: ignore[inplace-grad]" in answer["actions"]
    assert answer["hover"].startswith("### inplace-grad") and answer["lenses"] == ["check gradient", "derive backward"]
    assert answer["line"].strip() == "grad_output = grad_output.clone()" and answer["left"] == 2
    assert answer["derived"]["applied"] and answer["changed"]


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("emacs") is None, reason="Emacs is not installed")
def test_emacs_shows_fixes_derives_and_checks(tmp_path: Path) -> None:
    probe = ["emacs", "--batch", "-f", "package-initialize", "--eval", "(require 'eglot)"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this Emacs has no Eglot")
    loads = ["-l", str(SETTINGS / "emacs" / "gradsmith.el"), "-l", str(HERE / "in_emacs.el")]
    answer = _asked(["emacs", "--batch", "-f", "package-initialize", *loads], tmp_path)
    assert {m[1] for text in answer["diagnostics"] if (m := re.search(r"\[([\w-]+)\]", text))} == FINDINGS
    assert "ignore here: # gradsmith: ignore[inplace-grad]" in answer["actions"]
    assert answer["hover"].startswith("### inplace-grad")
    assert answer["fixed"] is answer["derived"] is answer["checked"] is True


def _asked(command: list[str], folder: Path) -> Any:
    """What the editor wrote down, with a `gradsmith` on its path."""
    (folder / "ops.py").write_text(SWISH)
    program = folder / "bin" / "gradsmith"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gradsmith "$@"\n')
    program.chmod(0o755)
    answer = folder / "answer.json"
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "ANSWER": str(answer), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.exists(), ended.stderr
    return json.loads(answer.read_text())

"""The composite action: its own steps, executed as a runner would, on a project with a finding and on one without."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradsmith.catalog import rules
from tests.daily import projects

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
BAD = rules()["inplace-grad"].bad


def executed(folder: Path, python: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the action's steps in a project; stops at the first that fails, as a runner does."""
    inputs = {name: given.get(name, known["default"]) for name, known in ACTION["inputs"].items()}
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    environment["GITHUB_STEP_SUMMARY"] = str(folder / "summary.md")
    done = subprocess.CompletedProcess([], 0, "", "")
    for step in ACTION["runs"]["steps"]:
        if "if" in step:
            name, value = re.fullmatch(r"inputs\.(\w+) == '(\w+)'", step["if"]).groups()  # type: ignore[union-attr]
            if inputs[name] != value:
                continue
        assert step["shell"] == "bash" and "${{" not in step["run"]
        values = {key: _substituted(text, inputs) for key, text in step["env"].items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=folder, env={**environment, **values}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return done
    return done


def _substituted(text: str, inputs: dict[str, str]) -> str:
    found = re.fullmatch(r"\$\{\{ (inputs|github)\.(\w+) \}\}", text)
    assert found is not None, text
    return inputs[found[2]] if found[1] == "inputs" else {"action_path": str(ROOT)}[found[2]]


def test_findings_become_annotations_a_summary_and_sarif(tmp_path: Path) -> None:
    projects.write(tmp_path, {"src/ops.py": BAD, "src/fine.py": "x = 1\n"})
    done = executed(tmp_path, Path(sys.executable), install="false", paths="src", sarif="out.sarif")
    assert done.returncode == 1, done.stderr
    (annotation, _) = done.stdout.splitlines()
    assert annotation.startswith("::error title=gradsmith (GS202),file=src/ops.py,line=")
    assert "error[GS202 inplace-grad]" in (tmp_path / "summary.md").read_text()
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/ops.py"


def test_a_clean_project_passes_and_arguments_arrive(tmp_path: Path) -> None:
    projects.write(tmp_path, {"ops.py": BAD})
    done = executed(tmp_path, Path(sys.executable), install="false", arguments="--ignore inplace-grad")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("all clean (1 custom gradient in 1 file)\n")


def test_what_a_user_writes_is_never_part_of_the_script(tmp_path: Path) -> None:
    projects.write(tmp_path, {"ops.py": "x = 1\n"})
    done = executed(tmp_path, Path(sys.executable), install="false", paths="$(touch owned) ; touch owned")
    assert done.returncode == 2 and not (tmp_path / "owned").exists()


@pytest.mark.deep
def test_the_action_installs_into_an_empty_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    projects.write(tmp_path / "project", {"ops.py": BAD})
    done = executed(tmp_path / "project", tmp_path / "venv" / "bin" / "python")
    assert done.returncode == 1 and "::error" in done.stdout, done.stderr

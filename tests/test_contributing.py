"""A seventh rule is one file: the worked example of CONTRIBUTING.md is dropped in and found. Rule packages: their test."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gradsmith

ROOT = Path(__file__).parents[1]


def example() -> str:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S)
    return next(block for block in blocks if "GS399" in block)


def test_the_test_for_a_rule_package_passes_on_one(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S)
    (tmp_path / "test_mine.py").write_text(next(block for block in blocks if '"acme"' in block))
    wheel = subprocess.run(
        [sys.executable, "-c", "import backend; print(backend.build_wheel('.'))"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "rule_packages" / "acme")},
        capture_output=True,
        text=True,
        check=True,
    )
    installed = tmp_path / "installed"
    shutil.unpack_archive(tmp_path / wheel.stdout.strip(), installed, "zip")
    path = os.pathsep.join([str(Path(gradsmith.__file__).parents[1]), str(installed)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout


def test_a_dropped_file_is_a_rule(tmp_path: Path) -> None:
    package = tmp_path / "gradsmith"
    shutil.copytree(Path(gradsmith.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "rules" / "numerics" / "bare_sqrt.py").write_text(example())
    script = (
        "import json, gradsmith\n"
        "from gradsmith.catalog import rules\n"
        "rule = rules()['bare-sqrt']\n"
        "bad = [f.rule for f in gradsmith.lint_source(rule.bad).findings if f.severity != 'info']\n"
        "good = [f.rule for f in gradsmith.lint_source(rule.good).findings if f.severity != 'info']\n"
        "print(json.dumps([gradsmith.__file__, bad, good]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where, bad, good = json.loads(done.stdout)
    assert where.startswith(str(tmp_path))
    assert bad == ["bare-sqrt"]
    assert good == []

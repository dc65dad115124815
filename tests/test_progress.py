"""What `gradsmith check` says while it works: each verdict once, and nothing that a program would trip over."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from forks import FORKS

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "first_gradient.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return FORKS.run("-m", "gradsmith", "check", EXAMPLE, "--level", "quick", "--no-cache", *arguments)


def test_each_verdict_is_told_once() -> None:
    done = run()
    assert done.returncode == 1
    assert done.stderr == ""
    told = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith(("refuted", "verified"))]
    assert told == [["refuted", "Swish"], ["verified", "Linear"], ["refuted", "LeakyClamp"]]
    assert done.stdout.rstrip().endswith("1 verified, 2 refuted")


def test_a_report_for_a_program_comes_alone() -> None:
    done = run("--format", "json")
    assert done.stderr == ""
    assert [s["verdict"] for s in json.loads(done.stdout)["subjects"]] == ["refuted", "verified", "refuted"]

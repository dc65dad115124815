"""Four checks, four lints and a pytest run of four processes at the same time: each says what it says alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from fault_runs import Ground, Outcome, ground

_FILE = """
import torch


class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x * {number}


def example():
    return (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {{"Right": example, "Wrong": example}}
"""
_TESTS = """
import gradsmith as gs
import pytest
import torch

from subject{number} import Right, Wrong, example


@pytest.mark.parametrize("number", range(4))
def test_right(number):
    gs.check(Right, *example(), level="quick").raise_if_failed()


def test_wrong():
    assert [f.rule for f in gs.check(Wrong, *example(), level="quick").errors] == ["wrong-gradient"]
"""


def _settled(text: str) -> str:
    """Without what is measured by the clock."""
    try:
        report = json.loads(text)
    except ValueError:
        return re.sub(r"\d+(\.\d+)?s", "", text)
    for subject in report.get("subjects", []):  # SARIF has none
        subject.pop("measured", None)
    return json.dumps(report, sort_keys=True)


def _jobs(place: Ground) -> list[list[str]]:
    found = [["check", f"subject{i}.py", "--format", "json"] for i in range(4)]
    found += [["lint", ".", "--format", "json"], ["lint", "subject0.py", "--format", "json"]]
    return [*found, ["lint", ".", "--no-cache", "--format", "json"], ["lint", "subject1.py", "--format", "sarif"]]


def _pytest(place: Ground) -> str:
    own = f"--basetemp={place.folder / 'pytest'}"  # what pytest itself keeps of a run is not ours
    words = [sys.executable, "-m", "pytest", "-q", "-n", "4", "-p", "no:cacheprovider", "--no-header", own, "."]
    done = subprocess.run(
        words, cwd=place.files, env=place.environment(), capture_output=True, text=True, check=False, timeout=900
    )
    return done.stdout.strip().splitlines()[-1].partition(" in ")[0] if done.stdout.strip() else done.stderr


def tried() -> Outcome:
    outcome = Outcome("four checks, four lints and pytest -n 4 at once")
    with ground() as place:
        for i in range(4):
            (place.files / f"subject{i}.py").write_text(_FILE.format(number=3 + i))
            (place.files / f"test_subject{i}.py").write_text(_TESTS.format(number=i))
        jobs = _jobs(place)

        def one(words: list[str]) -> str:
            return _settled(place.run(*words, seconds=900).stdout)

        alone = [one(words) for words in jobs] + [_pytest(place)]
        # A check gives a known verdict again, and says so: both begin with nothing known.
        shutil.rmtree(place.cache)
        place.cache.mkdir()
        with ThreadPoolExecutor(9) as pool:
            tests = pool.submit(_pytest, place)
            together = [*pool.map(one, jobs), tests.result()]
        names = [" ".join(words) for words in jobs] + ["pytest -n 4"]
        different = [name for name, a, b in zip(names, alone, together) if a != b or not a]
        if different or "passed" not in alone[-1]:
            outcome.trouble = f"different from serial: {', '.join(different) or alone[-1]}"
        return place.left(outcome)

"""A profile as people and services read it: every format, one remedy for one loop, no time that the machine cannot tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import gradsmith as gs
from gradsmith.profiling.events import cut_dimension
from gradsmith.report.profile_table import render

OPS = """import torch
from torch import nn


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        out = torch.empty(x.shape[0], y.shape[0])
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                out[i, j] = (x[i] * y[j]).sum()
        return out

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx, gy = torch.zeros_like(x), torch.zeros_like(y)
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                gx[i] += g[i, j] * y[j]
                gy[j] += g[i, j] * x[i]
        return gx, gy


class Walk(nn.Module):
    def forward(self, x):
        h = x.new_zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = torch.tanh(x[:, t] + h)
        return h


class Closed(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table["a"]["b"]

    def forward(self, x):
        return x * self.table


gradsmith_inputs = {
    "Pair": lambda: (torch.randn(8, 4, requires_grad=True), torch.randn(8, 4, requires_grad=True)),
    "Walk": lambda: (torch.randn(8, 16, 4, requires_grad=True),),
}
"""


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import importlib.util

    path = tmp_path_factory.mktemp("profile") / "ops_to_profile.py"
    path.write_text(OPS)
    spec = importlib.util.spec_from_file_location("ops_to_profile", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ops_to_profile"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pair(ops: Any) -> gs.Profile:
    inputs = [torch.randn(8, 4, requires_grad=True) for _ in range(2)]
    return gs.profile(ops.Pair, *inputs, budget=0.3)


def test_loops_of_forward_and_backward_are_one_remedy_with_one_gain(pair: gs.Profile) -> None:
    (loop,) = [f for f in pair.findings if f.rule == "element-loop"]
    assert "in forward and in backward" in (loop.advice or "")
    assert sorted(begin for begin, _ in loop.evidence["loops"]) == [10, 19]
    # Nearly all of it goes: what forward or backward alone would gain is at most 2 for one of them.
    assert loop.evidence["predicted_gain"] > 4


def test_steps_are_taken_apart_along_time(ops: Any) -> None:
    profile = gs.profile(ops.Walk(), torch.randn(8, 16, 4, requires_grad=True), budget=0.3)
    (found,) = [f for f in profile.findings if f.rule == "time-index"]
    assert "for x_t in x.unbind(1):" in (found.advice or "")


def test_the_dimension_of_a_cut_shows_in_memory(pair: gs.Profile) -> None:
    rows = [
        e for e in pair.recording.events if e.op == "select" and e.phase == "forward" and e.reads[0].shape == (8, 4)
    ]
    of_x = [e for e in rows if e.reads[0].storage == rows[0].reads[0].storage]
    assert cut_dimension(of_x) == 0
    assert cut_dimension([]) is None and cut_dimension(of_x[:1]) is None


def test_a_busy_machine_gets_no_times(pair: gs.Profile) -> None:
    calm, busy = {**pair.to_dict(), "disturbed": 0.1}, {**pair.to_dict(), "disturbed": 0.9}
    assert "  forward " in render(calm) and " ops\n" in render(calm)
    text = render(busy)
    assert "not told: others had the processor for 90% of the time" in text
    for unit in (" ms", " us", "Expected gain"):
        assert unit not in text


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_table_fits_the_terminal(width: int, pair: gs.Profile) -> None:
    remedies = [{"name": f"way {n}", "gain": None, "note": "does not run: " + "because " * 9} for n in range(3)]
    text = render({**pair.to_dict(), "remedies": remedies}, width=width)
    prose = [line for line in text.splitlines() if not line.strip().startswith(("-->", "#", "0%"))]
    sentences = [
        line for line in prose if line.startswith(("error", "warning", "info", "  help", "        ", "note", "  does"))
    ]
    assert sentences and all(len(line) <= width for line in sentences)
    assert text.count("does not apply: ") == 1


@pytest.mark.deep
def test_a_file_is_profiled_with_its_modules_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPS)

    def run(format: str) -> str:
        command = [sys.executable, "-m", "gradsmith", "profile", "ops.py", "--budget", "0.3", "--no-growth"]
        done = subprocess.run(
            [*command, "--format", format],
            cwd=tmp_path,
            env={**os.environ},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert [p["subject"]["name"] for p in json.loads(run("json"))] == ["Pair", "Walk"]
    assert "note: Closed is not profiled: " in run("full")
    results = json.loads(run("sarif"))["runs"][0]["results"]
    assert {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results} == {"ops.py"}
    assert "::warning title=gradsmith (GS503),file=ops.py" in run("github")
    assert "<testsuites" in run("junit") and "ops.py:" in run("concise")

"""`# gradsmith: ignore[rule]` hides what a run shows as it hides what the source shows: in process, and from the command line."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

import gradsmith as gs
from gradsmith.findings import Report
from gradsmith.report import render

FILE = """
import torch


def remember(ctx, x):
    ctx.kept = [x]


class Kept(torch.autograd.Function):{on_class}
    @staticmethod
    def forward(ctx, x):
        remember(ctx, x)  # only a run sees what stays on ctx
        return x * x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.kept
        return {factor}grad_output * (x.exp() + x * x.exp()){on_line}


gradsmith_inputs = {{"Kept": lambda: (torch.linspace(-1, 1, 4, dtype=torch.float64).requires_grad_(),)}}
"""
RULES = ["tensor-on-ctx", "wrong-gradient", "unused-ignore"]


def _both(tmp_path: Path, **parts: str) -> list[Report]:
    path = tmp_path / "kept.py"
    path.write_text(FILE.format(**{"on_class": "", "on_line": "", "factor": "", **parts}))
    spec = importlib.util.spec_from_file_location("kept", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.linspace(-1, 1, 4, dtype=torch.float64).requires_grad_()
    return [gs.check(module.Kept, x, select=RULES), gs.check_paths(path, select=RULES)]


def test_a_comment_on_the_class_hides_what_only_a_run_shows_and_is_of_use(tmp_path: Path) -> None:
    for report in _both(tmp_path):
        assert [(f.rule, f.lenses) for f in report.findings] == [("tensor-on-ctx", ("check",))]
    for report in _both(tmp_path, on_class="  # gradsmith: ignore[tensor-on-ctx]"):
        assert report.findings == [] and report.ok


@pytest.mark.parametrize("place", ["on_class", "on_line"])
def test_a_hidden_error_is_not_verified_but_known(place: str, tmp_path: Path) -> None:
    comment = {"on_class": "  # gradsmith: ignore[tensor-on-ctx]"}
    comment |= {place: f"  # gradsmith: ignore[wrong-gradient{', tensor-on-ctx' if place == 'on_class' else ''}]"}
    for report in _both(tmp_path, factor="2 * ", **comment):
        (subject,) = report.subjects
        assert report.findings == [] and not report.ok
        assert (subject.verdict, subject.known) == ("unverified", True)
        assert "wrong-gradient, which a comment ignores" in render(report, "full")


def test_a_comment_that_hides_nothing_in_either_lens_is_still_told(tmp_path: Path) -> None:
    report = _both(tmp_path, on_line="  # gradsmith: ignore[tensor-on-ctx]")[1]
    assert sorted(f.rule for f in report.findings) == ["tensor-on-ctx", "unused-ignore"]

"""Tensors without elements: tried only in a process of its own, where a crash costs nothing but that try."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import gradsmith as gs
from gradsmith import check_paths
from gradsmith.findings import Report

HEAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        {guard}
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        {before}
        return grad_output * w, {grad_w}


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.tensor([1.5, 0.5, -2.0], dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {{"Scale": example}}
"""
RIGHT = {"guard": "pass", "before": "pass", "grad_w": "(grad_output * x).sum(0)"}


def report_on(tmp_path: Path, **changes: str) -> Report:
    path = tmp_path / "scale.py"
    path.write_text(HEAD.format(**{**RIGHT, **changes}), encoding="utf-8")
    return check_paths(str(path))


def about_size_0(report: Report) -> list[str]:
    return [f"{f.rule} {f.severity}" for f in report.findings if "(0, 3)" in f.message or "size 0" in f.message]


def test_a_right_gradient_stays_right_without_elements(tmp_path: Path) -> None:
    report = report_on(tmp_path)
    assert report.ok
    assert about_size_0(report) == []


def test_a_backward_that_alone_rejects_them_is_a_finding(tmp_path: Path) -> None:
    report = report_on(tmp_path, before="x.max()")
    assert about_size_0(report) == ["shape-dependent info"]
    assert report.subjects[0].verdict == "verified"


def test_nan_for_an_empty_batch_is_an_error(tmp_path: Path) -> None:
    report = report_on(tmp_path, grad_w="(grad_output * x).sum(0) / x.shape[0] * torch.tensor(x.shape[0])")
    assert about_size_0(report) == ["shape-dependent error"]
    assert "'w' is NaN" in report.errors[0].message


def test_what_forward_rejects_is_listed_and_no_finding(tmp_path: Path) -> None:
    report = report_on(tmp_path, guard="assert len(x), 'an empty batch'")
    assert about_size_0(report) == []
    listed = report.subjects[0].measured["rejected variations"]
    assert any("size 0" in line and "an empty batch" in line for line in listed)


@pytest.mark.filterwarnings("ignore")
def test_a_crash_on_them_costs_only_that_try(tmp_path: Path) -> None:
    report = report_on(tmp_path, guard="import os\n        len(x) or os.abort()")
    assert about_size_0(report) == ["crashed warning"]
    assert "SIGABRT" in next(f.message for f in report.findings if f.rule == "crashed")
    assert report.subjects[0].verdict == "verified"


def test_they_are_not_tried_in_the_users_own_process() -> None:
    seen = set()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.add(len(x))
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output

    gs.check(Twice, torch.randn(4, 3, dtype=torch.float64, requires_grad=True))
    assert {1, 3, 4} <= seen
    assert 0 not in seen


def test_a_crash_on_other_shapes_leaves_what_level_quick_can_say(tmp_path: Path) -> None:
    report = report_on(tmp_path, guard="import os\n        x.shape == (4, 3) or os.abort()")
    assert [f.severity for f in report.findings if f.rule == "crashed"] == ["warning"]
    assert report.subjects[0].verdict == "verified"


def test_a_number_that_happens_to_equal_the_size_is_not_set_to_0(tmp_path: Path) -> None:
    path = tmp_path / "bounded.py"
    path.write_text(
        "import torch\n\n\n"
        "class Bounded(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x, high):\n        ctx.high = high\n        return x * high / 7\n\n"
        "    @staticmethod\n    def backward(ctx, grad_output):\n"
        "        return grad_output * (ctx.high**2 / 7 / ctx.high), None\n\n\n"
        'gradsmith_inputs = {"Bounded": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), 3)}\n',
        encoding="utf-8",
    )
    report = check_paths(path)
    assert [f.rule for f in report.findings if f.severity != "info" or "(4, 0)" in f.message] == []
    assert report.subjects[0].verdict == "verified"

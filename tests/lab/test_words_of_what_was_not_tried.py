"""What a verdict says of inputs that were not tried, and of a subject that could not be run."""

from __future__ import annotations

from pathlib import Path

import gradsmith as gs

HEAD = "import torch\n\n\n"
CLASS = """class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output
"""
INPUTS = '\n\ngradsmith_inputs = {"Double": lambda: (torch.randn(3, dtype=torch.float64, requires_grad=True),)}\n'


def test_level_quick_says_that_it_tried_no_other_inputs(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(HEAD + CLASS.format(forward="return 2 * x") + INPUTS)
    assert "right at your inputs only: level quick tries no others" in str(gs.check_paths(path, level="quick"))
    assert "inputs only" not in str(gs.check_paths(path))


def test_no_inputs_are_asked_for_where_a_package_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text("import nobody_has\n" + HEAD + CLASS.format(forward="return nobody_has.double(x)"))
    (subject,) = gs.check_paths(path, level="quick").subjects
    assert subject.verdict == "unverified"
    assert subject.reason == "forward uses nobody_has.double, and nobody_has is not installed; inputs cannot help"


def test_a_subject_that_is_late_says_which_line_was_running(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    endless = "while x.abs().max() >= 0:\n            x = x / 2\n        return 2 * x"
    path.write_text(HEAD + CLASS.format(forward=endless) + INPUTS)
    report = gs.check_paths(path, level="quick", timeout=3)
    (late,) = [f for f in report.findings if f.rule == "timed-out"]
    assert late.line in (7, 8)
    assert f"line {late.line} (forward) was running" in late.message
    assert not [f for f in report.findings if f.code.startswith("GS8")]  # what it does is not known

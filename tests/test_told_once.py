"""A library of surrogates is told once: one block of the report for what is the same of many Functions."""

from __future__ import annotations

from pathlib import Path

import gradsmith as gs
from gradsmith.findings import Report, Subject

HEAD = """import torch


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()) ** 2
"""
ANOTHER = """

class {name}(Spike):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * {slope}
"""


def test_three_surrogates_of_a_file_are_one_block_that_names_them_all(tmp_path: Path) -> None:
    path = tmp_path / "spikes.py"
    slopes = {"Box": "(x.abs() < 1).to(x.dtype)", "Logistic": "torch.sigmoid(x) * (1 - torch.sigmoid(x))"}
    path.write_text(HEAD + "".join(ANOTHER.format(name=name, slope=slope) for name, slope in slopes.items()))
    report = gs.check_paths(path, level="quick")
    assert len([f for f in report.findings if f.rule == "undeclared-surrogate"]) == 3  # each of them in the JSON
    shown = " ".join(str(report).split())
    assert shown.count("[GS217 undeclared-surrogate]") == 1
    assert "3 Functions of a kind" in shown
    assert "Spike (line 4), Box (line 16), Logistic (line 23)" in shown
    declared = path.read_text().replace(
        "Spike(torch.autograd.Function):", "Spike(torch.autograd.Function):  # gradsmith: surrogate"
    )
    path.write_text(declared)
    assert not [f for f in gs.check_paths(path, level="quick").findings if f.rule == "undeclared-surrogate"]


def test_who_waits_waits_for_a_function_of_its_own_file(tmp_path: Path) -> None:
    """Two files with the same names: that Inner is wrong in one of them says nothing about the other."""
    from gradsmith.checking.subjects import calls_of, wanted
    from gradsmith.checking.verdict import waiting

    source = "import torch\n\n\n" + "\n\n".join(
        f"class {name}(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return {value}\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad\n"
        for name, value in (("Inner", "x.clone()"), ("Outer", "Inner.apply(x)"))
    )
    files = [tmp_path / "one.py", tmp_path / "other.py"]
    for file in files:
        file.write_text(source)
    right, wrong = map(str, files)
    subjects = [Subject("Inner", "verified", path=right), Subject("Inner", "refuted", path=wrong)]
    subjects += [Subject("Outer", "verified", path=path) for path in (right, wrong)]
    told = waiting(Report(subjects=subjects), calls_of(wanted([str(tmp_path)])))
    assert [s.verdict for s in told.subjects] == ["verified", "refuted", "verified", "unverified"]

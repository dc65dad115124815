"""nn.Modules while a tape runs: how they were built, what they were called with, and that nothing stays behind."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path

import functions_that_run as ops
import pytest
import torch
from torch import nn

import gradsmith as gs
from gradsmith.inputs.recorded_file import modules_in


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class Cell(nn.Module):
    def __init__(self, size, out=3, *, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(size, out)
        self.scale = scale

    def forward(self, x, shift=None):
        x = self.linear(x)  # the argument is gone when the Function runs
        return self.scale * Square.apply(x if shift is None else x + shift)


class Detaching(Cell):
    """Every Function in it is right, and its own gradient is cut off, which may be meant."""

    def forward(self, x):
        return Square.apply(self.linear(x)) * self.linear(x).detach()


class Hooked(Cell):
    """Every Function in it is right, and a hook left over from an experiment halves what flows back."""

    def forward(self, x):
        y = self.linear(x)
        if y.requires_grad:
            y.register_hook(lambda grad: grad / 2)
        return Square.apply(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Cell(4, 5), Cell(5, scale=0.5)

    def forward(self, x):
        return self.second(self.first(x))


def test_the_innermost_module_is_noted_with_its_construction_and_first_arguments():
    x = torch.randn(7, 4)
    with gs.record() as tape:
        net = Net()
        for _ in range(5):
            net(x)
    assert [call.code for call in tape.modules] == ["Cell(size=4, out=5)", "Cell(size=5, scale=0.5)"]
    assert [call.module for call in tape.modules] == [net.first, net.second]
    assert torch.equal(tape.modules[0].args[0], x)
    assert tape.modules[0].functions == [Square]
    assert tape.modules[0].built.line.startswith("test_modules.py:")
    assert tape.count(Square) == 10


def test_modules_are_checked_alive_and_the_report_says_how_they_were_built():
    with gs.record() as tape:
        Net()(torch.randn(7, 4))
    report = tape.check(level="quick")
    verdicts = {s.name: (s.verdict, s.inputs_from) for s in report.subjects}
    assert verdicts == {"Square": ("verified", "recorded"), "Cell": ("verified", "recorded")}
    assert report.subjects[1].measured["constructed"] == "Cell(size=4, out=5)"
    assert any("Cell: built as Cell(size=4, out=5) at test_modules.py:" in note for note in report.notes)


def test_a_module_of_an_unverified_function_is_only_noted():
    with gs.record() as tape:
        ops.Layer()(torch.randn(4, 3))
    report = tape.check(level="quick")
    assert [s.name for s in report.subjects] == ["Swish", "Scale"]
    assert any(
        note.startswith("Layer: built as Layer() at") and "Swish, which it runs, is not verified" in note
        for note in report.notes
    )


def test_a_module_that_detaches_is_not_accused():
    with gs.record() as tape:
        Detaching(4)(torch.randn(7, 4))
    report = tape.check(level="quick")
    assert [s.name for s in report.subjects] == ["Square"]
    assert report.ok
    assert any("not that of its forward, which calls detach; gs.check(Detaching)" in note for note in report.notes)


def test_a_module_whose_gradient_is_wrong_though_its_functions_are_right_is_refuted():
    with gs.record() as tape:
        Hooked(4)(torch.randn(7, 4))
    report = tape.check(level="quick")
    assert {s.name: s.verdict for s in report.subjects} == {"Square": "verified", "Hooked": "refuted"}


def test_check_of_the_class_takes_the_recorded_instance():
    with gs.record() as tape:
        Net()(torch.randn(7, 4))
    subject = gs.check(Cell, level="quick").subjects[0]
    assert (subject.verdict, subject.inputs_from) == ("verified", "recorded")
    assert tape.modules  # it was alive


def test_the_saved_file_builds_them_again(tmp_path: Path):
    with gs.record() as tape:
        Net()(torch.randn(7, 4))
    tape.save(tmp_path / "calls.json")
    stored = json.loads((tmp_path / "calls.json").read_text())["modules"]
    assert [(m["module"], m["constructed"]) for m in stored] == [
        ("Cell", "Cell(size=4, out=5)"),
        ("Cell", "Cell(size=5, scale=0.5)"),
    ]
    (first, x), kwargs = modules_in(tmp_path / "calls.json", Cell)[0]
    assert first.linear.weight.shape == (5, 4)
    assert x.shape == (7, 4)
    assert kwargs == {}


def test_classes_and_instances_are_as_they_were():
    before, init = dict(vars(Cell)), nn.Module.__init__
    with gs.record():
        cell = Cell(4)
        keys = set(vars(cell))
        copy.deepcopy(cell)
        torch.save(cell.state_dict(), io.BytesIO())
        for _ in range(40):
            cell(torch.randn(2, 4))
        assert vars(Cell)["forward"] is before["forward"]  # nothing is in the way after the first calls
        assert set(vars(cell)) == keys
        assert not cell._forward_pre_hooks

        class Late(nn.Module):
            def forward(self, x):
                return Square.apply(x)

        Late()(torch.ones(2))
    assert dict(vars(Cell)) == before
    assert nn.Module.__init__ is init
    assert "__init_subclass__" not in vars(nn.Module)
    assert not hasattr(Late.forward, "__wrapped__")


def test_a_module_that_raises_leaves_nothing_running():
    class Failing(nn.Module):
        def forward(self, x):
            Square.apply(x)
            raise ZeroDivisionError

    with gs.record() as tape:
        with pytest.raises(ZeroDivisionError):
            Failing()(torch.ones(2))
        Square.apply(torch.ones(2, requires_grad=True))
    assert [call.name for call in tape.modules] == ["Failing"]
    assert tape.count(Square) == 2


def test_a_compiled_module_runs_on():
    compiled = torch.compile(Cell(4), backend="eager", fullgraph=True)
    with gs.record():
        assert compiled(torch.ones(2, 4)).shape == (2, 3)

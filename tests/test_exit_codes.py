"""The exit status never pretends: what was asked for and not examined is listed, and gives 1; a wrong call gives 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forks import FORKS

import gradsmith as gs
from gradsmith import torch_here

SQUARE = """import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {slope} * grad_output * x
"""
# Its names are those of Square's arguments, as they often are: those are not the ones that Square uses.
TRAINS = "for x, grad_output in [(1, 2)]:\n    ctx = open('trained', 'w')  # for hours\n"


def gradsmith(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    fresh = ["--no-cache"] if arguments[:1] == ("check",) else []  # keeping a verdict takes longer than finding it
    return FORKS.run("-m", "gradsmith", *arguments, *fresh, cwd=folder)


def write_notebook(path: Path, *cells: str) -> None:
    made = [
        {"cell_type": "code", "metadata": {}, "source": c, "outputs": [], "execution_count": None, "id": str(n)}
        for n, c in enumerate(cells)
    ]
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def test_gradsmith_alone_prints_help(tmp_path: Path) -> None:
    done = gradsmith(folder=tmp_path)
    assert done.returncode == 0
    assert "gradsmith check my_ops.py" in done.stdout


@pytest.mark.parametrize("command", ["lint", "check"])
def test_a_file_that_is_not_python_is_listed_and_gives_1(command: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = gradsmith(command, "bad.py", folder=tmp_path)
    assert done.returncode == 1
    assert "bad.py: syntax error at line 1" in done.stdout


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (")(", "--inputs ')(' is not Python"),
        ("", "--inputs '' is not Python"),
        ("unknown(3)", "--inputs raises NameError: name 'unknown' is not defined"),
        (
            "randn(3), 5",
            "--inputs cannot be used: these inputs do not fit Square.forward: too many positional arguments",
        ),
    ],
)
def test_wrong_inputs_are_a_wrong_call(inputs: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(SQUARE.format(slope=2))
    done = gradsmith("check", "ops.py", "--inputs", inputs, "--format", "json", folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr


def test_profile_lists_what_it_could_not_read(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = gradsmith("profile", "bad.py", folder=tmp_path)
    assert done.returncode == 2
    assert "bad.py: syntax error at line 1" in done.stderr
    (tmp_path / "ops.py").write_text(SQUARE.format(slope=2))
    done = gradsmith("profile", ".", "--budget", "0.1", "--no-growth", folder=tmp_path)
    assert done.returncode == 1
    assert "bad.py: syntax error at line 1" in done.stdout


@pytest.mark.parametrize(("slope", "status", "said"), [(2, 0, "1 verified"), (3, 1, "1 refuted")])
def test_the_functions_of_a_notebook_are_run_and_what_trains_is_not(
    slope: int, status: int, said: str, tmp_path: Path
) -> None:
    write_notebook(tmp_path / "work.ipynb", "%matplotlib inline\n", SQUARE.format(slope=slope), TRAINS)
    done = gradsmith("check", "work.ipynb", "--level", "quick", folder=tmp_path)
    assert (done.returncode, done.stdout.rstrip().splitlines()[-1]) == (status, said)
    assert not (tmp_path / "trained").exists()
    if status:
        assert "--> work.ipynb:cell 2:13:" in done.stdout


@pytest.mark.parametrize(("cell", "status"), [(SQUARE.format(slope=3), 1), (SQUARE.format(slope=2), 0), ("x = (", 1)])
def test_a_notebook_in_a_folder_is_run_too(cell: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "ops.py").write_text(SQUARE.format(slope=2).replace("Square", "Other"))
    write_notebook(tmp_path / "project" / "work.ipynb", cell)
    done = gradsmith("check", "project", "--level", "quick", "--format", "json", folder=tmp_path)
    assert done.returncode == status
    told = json.loads(done.stdout)
    assert [*(s["path"] for s in told["subjects"]), *(s["path"] for s in told["skipped"])] == [
        "project/ops.py",
        "project/work.ipynb",
    ]


def test_one_class_of_a_notebook_can_be_singled_out(tmp_path: Path) -> None:
    write_notebook(tmp_path / "work.ipynb", SQUARE.format(slope=2), SQUARE.format(slope=3).replace("Square", "Other"))
    done = gradsmith("check", "work.ipynb::Square", "--level", "quick", folder=tmp_path)
    assert (done.returncode, done.stdout.rstrip().splitlines()[-1]) == (0, "1 verified")


@pytest.mark.parametrize("command", [("check", "ops.py"), ("profile", "ops.py"), ("record", "train.py")], ids=" ".join)
def test_a_torch_that_is_too_old_is_one_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "old" / "torch").mkdir(parents=True)
    (tmp_path / "old" / "torch" / "__init__.py").write_text("raise AssertionError('it is not imported')\n")
    (tmp_path / "old" / "torch" / "version.py").write_text("__version__ = '2.5.1+cpu'\n")
    (tmp_path / "ops.py").write_text(SQUARE.format(slope=2))
    (tmp_path / "train.py").write_text("import ops\n")
    path = os.pathsep.join([str(tmp_path / "old"), *filter(None, [os.environ.get("PYTHONPATH")])])
    call = [sys.executable, "-m", "gradsmith", *command]
    own = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(call, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    said = f"gradsmith {command[0]} needs PyTorch 2.6 or newer, and 2.5.1+cpu is installed here"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gradsmith: {said}") and len(done.stderr.splitlines()) == 1


def test_a_torch_that_came_out_later_is_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ops.py").write_text(SQUARE.format(slope=2))
    monkeypatch.setattr(torch_here, "_written", lambda: "9.1.0")
    report = gs.check_paths(tmp_path / "ops.py", level="quick")
    assert [n for n in report.notes if "newer" in n] == [
        f"torch 9.1.0 is newer than gradsmith {gs.__version__}, which was tested with 2.6 to 2.15"
    ]

"""Special, endless and malformed files: skipped with the reason, and the file beside them is still linted."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_files import FORMATS, HOSTILE, tried
from forks import FORKS

import gradsmith as gs
from gradsmith.source.model import FunctionModel

QUICK = (
    "a named pipe", "a link to itself", "a link to /dev/zero", "a folder that holds a link to the one above",
    "a file of a terabyte, mostly nothing", "escapes for terminals", "a name with a line break",
    "a name that is not UTF-8", "a configuration that is a named pipe",
)  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_quick_ones(name: str) -> None:
    assert [o.words() for o in tried(name, ("json", "github")) if not o.survived] == []


@pytest.mark.deep
@pytest.mark.parametrize("name", HOSTILE)
def test_every_hostile_file_in_every_format(name: str) -> None:
    assert [o.words() for o in tried(name, FORMATS) if not o.survived] == []


def test_the_reason_says_what_stands_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    with open(tmp_path / "large.py", "wb") as out:
        out.truncate(200_000_000)
    reasons = {Path(s.path).name: s.reason for s in gs.lint(tmp_path).skipped}
    assert reasons == {
        "pipe.py": "is a named pipe, not a file",
        "loop.py": "cannot be read: Too many levels of symbolic links",
        "zero.py": "is a device, not a file",
        "large.py": "has 190 MiB; files of more than 16 MiB are not read",
    }


def test_a_chain_of_2000_subclasses_is_walked_a_few_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    HOSTILE["2,000 subclasses in a chain"](tmp_path)
    steps, walked = itertools.count(), FunctionModel._ancestors

    def counted(model: FunctionModel, without: str = "") -> Iterator[FunctionModel]:
        for base in walked(model, without):
            next(steps)
            yield base

    monkeypatch.setattr(FunctionModel, "_ancestors", counted)
    assert gs.lint(tmp_path).functions >= 1
    assert next(steps) < 2000 * 40  # from every class to the top it would be two million, for each question


DECLARED = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


gradsmith_inputs = {declared}
"""


def test_a_malformed_declaration_is_one_sentence_at_its_file_and_classes_are_keys(tmp_path: Path) -> None:
    """In real files, checked by the command: each of the others is checked all the same."""
    inputs = "lambda: (torch.randn(3, dtype=torch.float64, requires_grad=True),)"
    texts = {
        "list": "[1, 2]",
        "number": "7",
        "keys": "{3: 4}",
        "named": f"{{'Double': {inputs}}}",
        "by_class": f"{{Double: {inputs}}}",
    }
    for name, declared in texts.items():
        (tmp_path / f"{name}.py").write_text(DECLARED.replace("{declared}", declared))
    words = ["check", ".", "--level", "quick", "--format", "json", "--no-cache"]
    done = FORKS.run("-m", "gradsmith", *words, cwd=tmp_path)
    subjects = {Path(s["path"]).stem: s for s in json.loads(done.stdout)["subjects"]}
    for name in ("list", "number", "keys"):
        assert subjects[name]["verdict"] == "unverified"
        assert "gradsmith_inputs is" in subjects[name]["reason"] and "write a dict such as" in subjects[name]["reason"]
    for name in ("named", "by_class"):
        assert (subjects[name]["verdict"], subjects[name]["inputs_from"]) == ("verified", "declared"), subjects[name]

"""Large inputs: the gradient is judged as they are, all else on a part of them, in memory that is known beforehand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import large_inputs
import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.inputs.scaling import first_parts
from gradsmith.lab import pieces as pieces_module
from gradsmith.lab.explore import watching
from gradsmith.lab.pieces import largest, pieces, root_mean_square
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.copies import copied
from gradsmith.lab.subject.target import resolve


@pytest.fixture
def soon_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where inputs are large, with inputs of 400 kB."""
    for name in ("lab.lab", "checking.in_parts", "checking.memory_needed"):
        monkeypatch.setattr(f"gradsmith.{name}.LARGE", 300_000)
    for name in ("lab.pieces", "lab.run", "lab.measure.gradient", "lab.subject.copies"):
        monkeypatch.setattr(f"gradsmith.{name}.BLOCK", 1 << 12)
    monkeypatch.setattr(watching, "_HELD", 0)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class WithoutFactor(Swish):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + s * (1 - s))


class WrongFarOut(Swish):
    """Right on every part of the example that is short enough to be explored."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        right = Swish.backward(ctx, grad_output)
        right[90_000:] *= 1.5
        return right


class Share(torch.autograd.Function):
    """Right where every column sums to 1, which a part of it does not."""

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        ctx.save_for_backward(p)
        return p / p.sum(0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        return grad_output - (grad_output * p).sum(0)


class Doubled(torch.autograd.Function):
    """Writes into its input, as it says."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return 2 * grad_output


class Frees(torch.autograd.Function):
    """Frees what it saved, so that a second backward would read memory that is gone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.kept = x * 1
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        gradient = 2 * ctx.kept * grad_output
        ctx.kept.untyped_storage().resize_(0)
        return gradient


def _large() -> Tensor:
    return torch.randn(100_000, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.mark.usefixtures("soon_large")
def test_the_gradient_is_judged_on_large_inputs_and_all_else_on_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 4.0])  # of the part, and what 1e8 elements take
    monkeypatch.setattr("gradsmith.lab.lab.cost_of", lambda run: next(seconds))
    report = gs.check(Swish, _large(), level="quick")
    assert report.ok
    assert [n for n in report.notes if "all else was checked on a part of them (sizes 100000 to 49984)" in n]
    assert not [n for n in report.notes if "left out" in n]


@pytest.mark.usefixtures("soon_large")
@pytest.mark.parametrize(
    ("fn", "said"), [(WithoutFactor, "found on a part of them"), (WrongFarOut, "judged at your inputs")]
)
def test_a_wrong_gradient_is_found_on_the_part_or_on_the_whole(fn: Any, said: str) -> None:
    report = gs.check(fn, _large(), level="quick")
    assert report.subjects[0].verdict == "refuted"
    assert [f.rule for f in report.findings if f.severity == "error"] == ["wrong-gradient"]
    assert said in " ".join(report.notes)


@pytest.mark.usefixtures("soon_large")
def test_a_part_that_lost_the_structure_of_the_whole_refutes_nothing() -> None:
    p = torch.softmax(_large().detach().view(2000, 50), 0).requires_grad_()
    report = gs.check(Share, p, level="quick")
    assert report.subjects[0].verdict == "verified", report.findings
    assert "nothing else was checked: on a part of them (sizes 2000 to 992) it is wrong" in " ".join(report.notes)


@pytest.mark.usefixtures("soon_large")
def test_large_inputs_of_the_user_stay_as_they_are() -> None:
    x = _large()
    before = x.detach().clone()
    assert gs.check(Doubled, x, level="quick").subjects[0].verdict == "verified"
    assert torch.equal(x, before) and x.grad is None


@pytest.mark.usefixtures("soon_large")
def test_freed_memory_is_seen_though_storages_are_not_held() -> None:
    arguments = Arguments.of((_large(),))
    assert watching.watched(resolve(Frees), arguments, 0).frees
    assert not watching.watched(resolve(Swish), arguments, 0).frees


@pytest.mark.usefixtures("soon_large")
def test_the_copy_that_autograd_holds_takes_no_memory() -> None:
    x = _large()
    given = copied(Arguments.of((x,)))
    assert given.leaves[0].data_ptr() == x.data_ptr()
    assert given.args[0].data_ptr() != x.data_ptr()


@pytest.mark.parametrize("tensor", [torch.randn(70, 300).t(), torch.randn(1, 300).expand(70, 300), torch.randn(21000)])
def test_pieces_are_views_and_all_of_a_tensor(tensor: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "BLOCK", 1000)
    parts = [part for (part,) in pieces(tensor)]
    assert len(parts) > 20 and all(p.numel() <= 1000 for p in parts)
    assert sum(p.numel() for p in parts) == tensor.numel()
    assert all(p.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr() for p in parts)
    assert root_mean_square(tensor) == pytest.approx(float(tensor.double().square().mean().sqrt()))
    assert largest(tensor) == float(tensor.abs().max())


def test_parts_keep_small_sizes_whole_and_what_belongs_together() -> None:
    x, labels = torch.randn(100_000, 10), torch.zeros(100_000, dtype=torch.long)
    ((cut, again, ids), options), words = first_parts(((x, x, labels), {"classes": 10}), 1 << 16)
    assert cut is again and cut.shape == (3104, 10) and ids.shape == (3104,) and options == {"classes": 10}
    assert words == "sizes 100000 to 3104"
    assert cut.data_ptr() != x.data_ptr()


FILE = """
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


gradsmith_inputs = {"Swish": lambda: (torch.randn(10_000_000, requires_grad=True),)}
"""


def test_what_will_not_fit_is_said_before_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "swish.py"
    file.write_text(FILE)
    command = [sys.executable, "-m", "gradsmith", "check", str(file), "--level", "quick", "--format", "json"]
    done = subprocess.run([*command, "--memory-limit", "1"], capture_output=True, text=True, check=False)
    (subject,) = json.loads(done.stdout)["subjects"]
    assert done.returncode == 1 and subject["verdict"] == "unverified"
    assert subject["reason"].startswith(
        "a check of 0.037 GiB of inputs takes about 1.8 GiB of memory, and the limit of 1 GiB"
    )
    assert subject["reason"].endswith("; pass smaller inputs, or raise --memory-limit")


@pytest.mark.deep
@pytest.mark.parametrize("name", ["Swish", "Squares", "Product", "Softmax"])
def test_large_inputs_are_checked_within_twelve_times_their_memory(name: str) -> None:
    found = large_inputs.measured(large_inputs.LARGE, 20_000_000, "quick", name)
    assert found["verdict"] == "verified"
    assert float(str(found["peak"])) <= 12 * float(str(found["data"]))

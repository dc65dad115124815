"""benchmarks/reach.py on a small set of our own: what counts as named, what is printed, and the exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from naming import answer, outcome
from reach import _entry, check_file

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

FUNCTION = """
import torch


class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {backward}


gradsmith_inputs = {{"{name}": lambda: (torch.{draw}(4, 3, dtype=torch.float64).add(0.1).requires_grad_(),)}}
"""
PAIRS: dict[str, tuple[tuple[str, str, str, str], str, dict[str, Any]]] = {
    "001_column_mean": (
        ("ColumnMean", "x.mean(0)", "grad_output.expand_as(x) / 4", "randn"),
        "grad_output.expand_as(x) / x.shape[0]",
        {"hidden": True, "mechanism": "divides by 4, the size of the example", "harm": "scale"},
    ),
    "002_absolute": (
        ("Absolute", "x.abs()", "grad_output", "rand"),
        "grad_output * x.sign()",
        {"hidden": True, "mechanism": "right for positive x alone", "harm": "sign"},
    ),
    "003_cosine": (
        ("Cosine", "x.cos()", "grad_output * x.sin()", "randn"),
        "-grad_output * x.sin()",
        {"hidden": False, "mechanism": "lost its minus", "harm": "sign"},
    ),
}
RIGHT = {
    "001_cube": ("Cube", "x**3", "grad_output * 3 * x**2", "randn"),
    "002_logarithm": ("Logarithm", "x.log()", "grad_output / x", "rand"),
}


def source(name: str, forward: str, backward: str, draw: str) -> str:
    return FUNCTION.format(name=name, forward=forward, backward=backward, draw=draw)


@pytest.fixture
def small_set(tmp_path: Path) -> Path:
    entries = []
    for folder, (broken, mended, about) in PAIRS.items():
        place = tmp_path / "pairs" / folder
        place.mkdir(parents=True)
        (place / "broken.py").write_text(source(*broken))
        (place / "mended.py").write_text(source(broken[0], broken[1], mended, broken[3]))
        (place / "harm.py").write_text("raise SystemExit('the proof of the author; nothing of ours runs it')\n")
        entries.append({"id": folder.partition("_")[0], "name": folder.partition("_")[2], **about})
    (tmp_path / "right").mkdir()
    for name, parts in RIGHT.items():
        (tmp_path / "right" / f"{name}.py").write_text(source(*parts))
    (tmp_path / "manifest.json").write_text(json.dumps({"pairs": entries, "right": []}))
    return tmp_path


def report(verdict: str, *findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"findings": list(findings), "subjects": [{"verdict": verdict, "reason": "", **more}]}


ERROR = {"rule": "wrong-gradient", "code": "GS201", "severity": "error", "message": "is wrong", "argument": "x"}
WARNING = {**ERROR, "severity": "warning"}
STATED = {**WARNING, "rule": "assumes", "code": "GS299"}
SLOW = {**WARNING, "rule": "host-sync", "code": "GS501"}


@pytest.mark.parametrize(
    ("broken", "mended", "kind"),
    [
        (report("refuted", ERROR), report("verified"), "error"),
        (report("refuted", ERROR), report("refuted", ERROR), "unverified"),
        (report("refuted", ERROR), report("refuted", {**ERROR, "argument": "w"}), "error"),
        (report("verified", STATED), report("verified"), "assumption"),
        (report("verified", WARNING), report("verified"), "assumption"),
        (report("verified", STATED), report("verified", STATED), "silent"),
        (report("verified", assumptions=["rows sum to 1"]), report("verified"), "assumption"),
        (report("verified", SLOW), report("verified"), "silent"),
        (report("verified"), report("verified"), "silent"),
        (report("unverified"), report("verified"), "unverified"),
    ],
)
def test_a_bug_is_named_by_what_the_mended_one_does_not_get(
    broken: dict[str, Any], mended: dict[str, Any], kind: str
) -> None:
    assert outcome(answer(broken), answer(mended))[0] == kind


def test_the_manifest_is_found_by_number_by_name_or_by_both() -> None:
    entries = [{"id": 1, "name": "mean"}, {"id": "002_absolute"}, {"name": "cosine"}]
    assert [_entry(entries, f) for f in ("001_mean", "002_absolute", "017_cosine")] == entries
    assert _entry(entries, "004_unknown") == {}


def test_a_file_that_takes_too_long_is_counted_and_ended(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text("import time\ntime.sleep(60)\n" + source(*RIGHT["001_cube"]))
    checked = check_file(path, "quick", limit=2.0)
    assert checked.status is None
    assert checked.answer.verdict == "unverified"
    assert checked.answer.trouble == ("no answer within 2 s",)


@pytest.mark.deep
def test_the_table_counts_misses_false_alarms_and_the_goal(small_set: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "reach.py"), str(small_set), "--json", str(tmp_path / "out.json")]
    done = subprocess.run([*command, "--goal", "0.3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "out.json").read_text())
    assert {p["name"]: p["about"]["harm"] for p in told["pairs"]} == {k: v[2]["harm"] for k, v in PAIRS.items()}
    kinds = {p["name"]: p["kind"] for p in told["pairs"]}
    assert kinds["003_cosine"] == "error"
    assert len(told["right"]) == 2
    assert "errors on mended: 0 of 3" in done.stdout
    assert "errors on right: 0 of 2" in done.stdout
    assert "visible                         1          1" in done.stdout
    assert done.stderr.count("/8 ") == 8, "one line for each file"
    for name, (_, _, about) in PAIRS.items():
        missed = kinds[name] not in ("error", "assumption")
        assert (about["mechanism"] in done.stdout) == missed

    harder = [*command, "--only", "003", "--goal", "1.01"]
    assert subprocess.run(harder, capture_output=True).returncode == 1

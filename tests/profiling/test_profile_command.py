"""`gradsmith profile` as it is typed: one process per subject, words and exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from forks import FORKS

SOURCE = '''
import os
import torch
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.stack([row * row for row in x])

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grads = []
        for i in range(x.shape[0]):
            grads.append(2 * x[i] * grad_output[i])
        return torch.stack(grads)


class NoForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise ValueError("no such mode")

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        raise ValueError("not written yet")


class Dies(torch.autograd.Function):
    """Stands for a process that the system ends at a larger size."""

    @staticmethod
    def forward(ctx, x):
        if x.shape[0] > 8:
            os._exit(9)
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.w = nn.Linear(inputs, hidden)
        self.u = nn.Linear(hidden, hidden)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.u.out_features)
        for x_t in x.unbind(0):
            h = torch.sigmoid(self.w(x_t) + self.u(h)) * h + 1
        return h


def constant(x):
    return x.detach() * 2


gradsmith_inputs = {
    "Square": lambda: (torch.randn(64, 64, requires_grad=True),),
    "Rows": lambda: (torch.randn(32, 8, requires_grad=True),),
    "Dies": lambda: (torch.randn(8, requires_grad=True),),
}
'''


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was printed, without its line breaks."""
        return " ".join(self.out.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ops")
    (made / "ops.py").write_text(SOURCE)
    return made


def run(folder: Path, *words: str, quick: bool = True) -> Said:
    options = ["--budget", "0.3", "--threads", "1"] if quick else []
    done = FORKS.run("-m", "gradsmith", "profile", *words, *options, cwd=folder)
    assert "Traceback" not in done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


def test_a_function_is_profiled_and_the_line_named(folder: Path) -> None:
    said = run(folder, "ops.py::Rows", "--budget", "2", quick=False)
    assert said.status == 0 and said.err == ""
    line = 1 + SOURCE.splitlines().index("        for i in range(x.shape[0]):")
    assert f"backward launches 2 ops per iteration at ops.py:{line}: a Python loop over" in said.words
    assert "of the run time); vectorise it." in said.words
    assert "declared x (32, 8) float32" in said.words
    assert "growth" in said.out


def test_json_is_json_whatever_was_found(folder: Path) -> None:
    said = run(folder, "ops.py::Square", "--format", "json", "--no-growth")
    data = json.loads(said.out)
    assert data["schema"] == 1
    assert data["subject"]["name"] == "Square" and data["subject"]["inputs_from"] == "declared"
    assert data["memory"]["saved_bytes"] == 64 * 64 * 4
    assert data["seconds"]["forward"]["median"] > 0 and data["growth"] == []


def test_several_subjects_are_a_list(folder: Path) -> None:
    (folder / "two.py").write_text(SOURCE.partition("class NoForward")[0])
    said = run(folder, "two.py", "--format", "json", "--no-growth")
    assert [p["subject"]["name"] for p in json.loads(said.out)] == ["Square", "Rows"]


def test_files_for_viewers(folder: Path) -> None:
    """Perfetto reads the JSON trace format: complete events with microseconds, metadata that names process and threads."""
    said = run(
        folder,
        "ops.py::Rows",
        "--no-growth",
        "--trace",
        "x.trace.json",
        "--flame",
        "x.flame.json",
        "--output",
        "x.json",
    )
    assert said.status == 0 and said.out == ""
    trace = json.loads((folder / "x.trace.json").read_text())
    assert isinstance(trace["traceEvents"], list) and trace["displayTimeUnit"] == "ms"
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["ph"] for e in trace["traceEvents"]} == {"X", "M"}
    for event in events:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert event["ts"] >= 0 and event["dur"] >= 0
    tracks: dict[int, float] = {}
    for event in events:  # on one track events may nest but never overlap; these lie end to end
        assert event["ts"] >= tracks.get(event["tid"], 0.0) - 0.002
        tracks[event["tid"]] = event["ts"] + event["dur"]
    named = {(e["name"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert {named["thread_name", tid] for tid in tracks} == {"forward", "backward"}
    flame = json.loads((folder / "x.flame.json").read_text())
    assert flame["name"] == "Rows" and {c["name"] for c in flame["children"]} == {"forward", "backward"}
    profile = json.loads((folder / "x.json").read_text())
    assert len(events) == sum(use["calls"] for use in profile["by_op"])


def test_compare_gives_a_ratio_with_an_interval(folder: Path) -> None:
    said = run(folder, "ops.py::Rows", "--compare", "ops.py::Square", "--no-growth")
    assert said.status == 0
    assert "times slower than Square" in said.words and "95 % interval" in said.words
    assert "They do not compute the same" not in said.words


def test_try_runs_the_remedies(folder: Path) -> None:
    (folder / "long.py").write_text(SOURCE.replace("return x * x", "return x * x" + " + 0" * 401))
    said = run(folder, "long.py::Square", "--try", "--no-growth")
    assert said.status == 0
    assert "tried: how many times faster" in said.out
    assert "the plain composition under autograd" in said.words
    assert "torch.compile of it" in said.words and "not tried: unrolling 402 operations" in said.words


@pytest.mark.deep
def test_try_runs_the_compiler(folder: Path) -> None:
    said = run(folder, "ops.py::Square", "--try", "--no-growth")
    assert said.status == 0
    assert "tried: how many times faster" in said.out
    assert "the plain composition under autograd" in said.words
    assert "torch.compile of it" in said.words


def test_inputs_on_the_command_line_win(folder: Path) -> None:
    said = run(folder, "ops.py::Square", "--inputs", "randn(3, 5)", "--no-growth")
    assert "given x (3, 5) float32" in said.words


def test_inputs_are_guessed_large_enough_and_kept_in_a_note(folder: Path) -> None:
    (folder / "bare.py").write_text(SOURCE.partition("gradsmith_inputs")[0])
    said = run(folder, "bare.py::Square", "--format", "json", "--no-growth")
    data = json.loads(said.out)
    assert data["subject"]["inputs_from"] == "guessed"
    assert data["memory"]["saved_bytes"] >= 4 * (1 << 15)
    (note,) = [n for n in data["notes"] if "guessed" in n]
    assert 'gradsmith_inputs = {"Square": lambda: (torch.randn(' in note


def test_a_layer_is_built_and_its_inputs_are_guessed(folder: Path) -> None:
    said = run(folder, "ops.py::Cell", "--no-growth")
    assert said.status == 0
    assert "guessed" in said.words and '"Cell": lambda: (Cell(inputs=' in said.words


def test_recorded_inputs_are_taken_as_check_takes_them(folder: Path) -> None:
    (folder / "bare.py").write_text(SOURCE.partition("gradsmith_inputs")[0])
    tensor = {"tensor": [7, 9], "stride": [9, 1], "dtype": "float32", "device": "cpu", "requires_grad": True}
    call = {"function": "Square", "count": 1, "lines": {}, "scaled": "", "args": [{**tensor, "mean": 0, "std": 1}]}
    (folder / "calls.json").write_text(json.dumps({"schema": 1, "gradsmith": "1", "calls": [call]}))
    said = run(folder, "bare.py::Square", "--recorded", "calls.json", "--no-growth")
    assert "recorded x (7, 9) float32" in said.words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ops.py::Sqare",), "ops.py has no 'Sqare'; did you mean 'Square'?"),
        (("nowhere.py::Square",), "no such file or folder: nowhere.py"),
        (("ops.py::Square", "--inputs", "randn(3"), "--inputs 'randn(3' is not Python"),
        (("ops.py::Square", "--inputs", "missing(3)"), "--inputs raises NameError"),
        (("ops.py::Square", "--compare", "ops.py"), "--compare ops.py: write file.py::Name"),
        (("ops.py::Square", "--output", "no/such/folder.json"), "cannot write no/such/folder.json"),
        (("ops.py::Square", "--format", "yaml"), "yaml"),
        ((), "TARGETS"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_call_is_one_sentence(folder: Path, words: tuple[str, ...], sentence: str) -> None:
    said = run(folder, *words, "--no-growth")
    assert said.status == 2
    assert sentence in said.err and said.out == ""


def test_a_forward_that_raises_is_a_finding(folder: Path) -> None:
    said = run(folder, "ops.py::NoForward", "--inputs", "randn(3)")
    assert said.status == 1
    assert "NoForward.forward raises ValueError: no such mode." in said.words
    assert "nothing could be measured" in said.words


def _times(said: Said, *passes: str) -> bool:
    """The time of each pass is told; or why not, if other processes had the processor meanwhile."""
    return "time not told: others had the processor" in said.words or all(f"  {name} " in said.out for name in passes)


def test_a_backward_that_raises_leaves_what_forward_costs(folder: Path) -> None:
    said = run(folder, "ops.py::NoBackward", "--inputs", "randn(3)", "--no-growth")
    assert said.status == 1
    assert "NoBackward.backward raises ValueError: not written yet." in said.words
    assert "forward was measured alone" in said.words and _times(said, "forward")


def test_nothing_that_requires_grad_is_said(folder: Path) -> None:
    said = run(folder, "ops.py::constant", "--inputs", "randn(3)", "--no-growth")
    assert said.status == 0
    assert "no output carries a gradient; forward was measured alone" in said.words


def test_a_process_that_dies_at_a_larger_size_keeps_what_was_measured(folder: Path) -> None:
    said = run(folder, "ops.py::Dies")
    assert said.status == 0
    assert "ended the process that profiled it: exit status 9; this is what was measured before" in said.words
    assert _times(said, "forward", "backward")


def test_nothing_is_shown_in_a_pipe_and_the_stages_on_a_terminal(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = ["ops.py::Square", "--no-growth", "--budget", "0.3", "--threads", "1"]
    command = [sys.executable, "-m", "gradsmith", "profile", *words]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1 << 16):
                shown += part
        except OSError:  # the terminal is gone with the process
            pass
        assert process.stdout is not None and b"Square" in process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    # Which stages are seen depends on how long they last; that some are does not.
    assert re.search(rb"Square: \w+", shown)


def test_help_has_examples(folder: Path) -> None:
    said = run(folder, "--help", quick=False)
    assert said.status == 0
    assert "gradsmith profile my_ops.py::Swish --compare other_ops.py::Swish" in said.out
    for option in ("--inputs", "--recorded", "--try", "--trace", "--budget", "--timeout", "--format"):
        assert option in said.out


@pytest.mark.deep
def test_the_time_limit_ends_it_and_keeps_what_was_measured(folder: Path) -> None:
    endless = SOURCE.replace("os._exit(9)", "exec('while True: pass')")
    (folder / "endless.py").write_text(endless)
    said = run(folder, "endless.py::Dies", "--timeout", "40")
    assert said.status == 0
    assert "did not finish within 40 s of CPU time; give it smaller --inputs" in said.words
    assert "  forward " in said.out

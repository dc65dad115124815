"""`gs.check_paths` does what `gradsmith check` does, and its report does not depend on the number of jobs."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import gradsmith as gs
from gradsmith.checking.isolated import WORKER
from gradsmith.checking.options import Options
from gradsmith.cli.check_command import command
from gradsmith.lab.process.channel import Channel, Listener
from gradsmith.lab.process.isolation import Limits, Zygote

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [
    EXAMPLES / "first_gradient.py",
    EXAMPLES / "broken" / "tanh_sign.py",
    EXAMPLES / "broken" / "linear_too_few_gradients.py",
    EXAMPLES / "gallery" / "elementwise" / "swish.py",
    EXAMPLES / "broken" / "max_ties.py",
]
# What decides about rendering and exit, not about the check.
ABOUT_OUTPUT = {
    "verbose",
    "profile",
    "format",
    "output",
    "also",
    "baseline",
    "fail_on",
    "exit_zero",
    "allow_unverified",
    "isolated",
    "open",
}
# What a command does with the report afterwards, and how it finds the files to check.
WRITES = {"fix", "unsafe_fixes", "diff", "write_test", "force", "declare_surrogates", "write_inputs"}
NARROWS = {"changed", "changed_from", "last_failed"}
ELSEWHERE = {"no_cache": "cache", "stub": "stubs", "memory_limit": "memory"}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("seconds", "elapsed", "cpu_seconds")}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def as_json(report: gs.Report) -> Any:
    return without_times(json.loads(report.to_json()))


@pytest.mark.parametrize("level", ["quick", pytest.param("standard", marks=pytest.mark.deep)])
def test_the_report_does_not_depend_on_the_number_of_jobs(level: str) -> None:
    alone, together = (as_json(gs.check_paths(*FILES, level=level, jobs=jobs)) for jobs in (1, 3))
    assert alone == together
    assert [s["name"] for s in alone["subjects"]][:3] == ["Swish", "Linear", "LeakyClamp"]
    assert {s["verdict"] for s in alone["subjects"]} >= {"verified", "refuted"}


def test_it_takes_whatever_the_command_line_takes() -> None:
    options = {p.name for p in command.params} - ABOUT_OUTPUT - WRITES - NARROWS - {"targets"}
    taken = {*inspect.signature(gs.check_paths).parameters, *(f.name for f in fields(Options))}
    assert {ELSEWHERE.get(name, name) for name in options} <= taken


def test_gs_check_takes_the_options_as_they_are_written_down() -> None:
    """`gs.check` spells them out for editors and readers: same names, same defaults, nothing that is not an option."""
    spelled = inspect.signature(gs.check).parameters
    known = {f.name: f for f in fields(Options)}
    own = set(spelled) - {"fn", "inputs", "kwargs", "isolate"}
    assert own == set(known) - {"debug", "lint", "isolated", "empty", "recorded", "assumes", "kind", "surrogates"}
    assert {name: spelled[name].default for name in own} == {name: known[name].default for name in own}
    assert {name: spelled[name].annotation for name in own} == {name: known[name].type for name in own}


def test_an_option_that_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(gs.GradsmithError, match="no option is called 'levle'; did you mean 'level'"):
        gs.check_paths(str(FILES[0]), levle="quick")


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tanh_sign.py"
    path.write_text(FILES[1].read_text(encoding="utf-8"), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-m", "gradsmith", "check", str(path), "--level", "quick", "--format", "json", "--isolated"]
    said = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert said.returncode == 1
    assert without_times(json.loads(said.stdout)) == as_json(gs.check_paths(path, level="quick"))


def test_inputs_limits_and_stubs(tmp_path: Path) -> None:
    path = tmp_path / "double.py"
    path.write_text(
        "import torch\nimport a_module_nobody_has\n\n\n"
        "class Double(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n\n"
        "    @staticmethod\n    def backward(ctx, grad_output):\n        return 2 * grad_output\n",
        encoding="utf-8",
    )
    given = {"level": "quick", "inputs": "torch.randn(3, requires_grad=True)"}
    assert "import-failed" in {f.rule for f in gs.check_paths(path, **given).findings}
    report = gs.check_paths(f"{path}::Double", stubs=["a_module_nobody_has"], **given)
    assert report.subjects[0].verdict == "verified"
    assert report.subjects[0].inputs_from == "given"
    slow = path.with_name("slow.py")
    slow.write_text(path.read_text().replace("return 2 * x", "\n        while True: pass"), encoding="utf-8")
    report = gs.check_paths(slow, stubs=["a_module_nobody_has"], timeout=1.0, **given)
    assert report.subjects[0].reason.startswith("timed-out")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Zygote, Channel]]:
    """A zygote with a process that says nothing, and the end of the channel into which it would write."""
    zygote = Zygote(Limits(), WORKER)
    zygote.replies = Listener(tmp_path / "replies", "nonce")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as silent:
        zygote.process = silent
        yield zygote, Channel(tmp_path / "replies", "nonce")
    zygote.replies.close()


# It needs 0.15 s of a processor that it gets a tenth of.
KEPT_WAITING = """
import os, signal, sys, time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
other = os.fork()
while other == 0:
    pass
os.nice(10)


def work():
    enough = time.process_time() + 0.15
    while time.process_time() < enough:
        pass


"""
told = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell who waits")


@told
def test_a_subject_that_others_keep_from_running_has_not_timed_out(pair: tuple[Zygote, Channel]) -> None:
    zygote, other_end = pair
    zygote.limits = Limits(seconds=0.5)
    code = "from gradsmith.lab.process.channel import Channel; from pathlib import Path\n" + KEPT_WAITING
    code += "print('ready', flush=True); work()\n"
    code += "Channel(Path(sys.argv[1]), 'nonce').send(worker_exit=0)\n"
    command = [sys.executable, "-c", code + "os.kill(other, signal.SIGKILL)", str(other_end.pipe)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        answer = zygote._reply(["worker_exit"], process.pid)
    assert answer["killed"] == ""


@told
def test_patience_does_not_end_while_others_have_the_processor() -> None:
    code = KEPT_WAITING.replace("time\n", "time\nfrom gradsmith.lab.conditions.patience import at_most\n", 1)
    code += "try:\n    with at_most(0.5): work()\nfinally: os.kill(other, signal.SIGKILL)\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_replies_that_overtake_each_other_are_not_lost(pair: tuple[Zygote, Channel]) -> None:
    """A keeper can be done importing before the zygote has said that it forked it; that once cost two minutes."""
    zygote, other_end = pair
    other_end.send(imported=True)
    other_end.send(keeper=17)
    assert zygote._reply(["keeper"], None)["keeper"] == 17
    assert zygote._reply(["imported"], None)["imported"]


def test_a_line_without_the_nonce_and_a_flood_are_dropped(pair: tuple[Zygote, Channel]) -> None:
    zygote, other_end = pair
    Channel(other_end.pipe, "another").send(worker=1)
    descriptor = os.open(other_end.pipe, os.O_WRONLY)
    os.write(descriptor, b"nonce ../../etc/passwd\n" + b"x" * 9000 + b"\n")
    os.close(descriptor)
    other_end.send(worker=18)
    assert zygote._reply(["worker"], None)["worker"] == 18

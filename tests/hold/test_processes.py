"""The processes and the folders of a check: who ends them, and when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fault_signals
import fault_subjects
import pytest
from fault_runs import ground

from gradsmith.lab.process import run_folder, tree
from gradsmith.lab.process.stopping import Stopped, orderly, undisturbed
from gradsmith.lab.process.time_limit import TimeLimit


def test_a_signal_waits_until_a_block_is_done_and_comes_once() -> None:
    done = []

    def work() -> None:
        with orderly():
            with undisturbed():
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("all of it")
            done.append("never")

    with pytest.raises(Stopped) as stopped:
        work()
    assert done == ["all of it"] and stopped.value.status == 143 and stopped.value.words == "interrupted by SIGTERM"


PARTS = """
from gradsmith.lab.process import run_folder
with run_folder.part() as first:
    with run_folder.part() as second:
        assert first.parent == second.parent and second.stat().st_mode & 0o077 == 0
    assert run_folder.in_use() and first.is_dir() and not second.exists()
assert not run_folder.in_use() and not first.parent.exists()
"""


def test_parts_go_one_by_one_and_the_run_folder_with_the_last() -> None:
    """In a process of its own: others may have parts in this one."""
    subprocess.run([sys.executable, "-c", PARTS], check=True)


ABANDONING = """
import os, signal
from gradsmith.lab.process import run_folder
print(run_folder.new_part(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    left = subprocess.run(
        [sys.executable, "-c", ABANDONING], env=environment, capture_output=True, text=True, check=False
    )
    assert Path(left.stdout.strip()).is_dir()
    others = tmp_path / "gradsmith-1-1-00000000-x"  # of another machine: nobody knows whether its owner lives
    others.mkdir()
    with run_folder.part() as mine:  # there may be a run folder elsewhere already
        alive = mine.parent
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        run_folder._remove_abandoned(tmp_path)
        run_folder._remove_abandoned(alive.parent)
        assert alive.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [others.name]


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("up", flush=True)
        time.sleep(600)
    time.sleep(600)
time.sleep(600)
"""


def test_all_that_is_below_a_process_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        below = tree.below(process.pid)
        assert len(below) == 2
        tree.end([process.pid])
        until = time.monotonic() + 5
        while any(map(tree.is_running, below)) and time.monotonic() < until:
            time.sleep(0.01)
        assert not any(map(tree.is_running, below))


def test_memory_that_processes_share_is_counted_once() -> None:
    code = "import os, time\nx = b'x' * 200_000_000\nif os.fork(): print(1, flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "1\n"
        pids = [process.pid, *tree.below(process.pid)]
        assert 190_000_000 < tree.memory(pids, 1) < 300_000_000
        tree.end(pids)


def test_a_limit_counts_cpu_time_and_what_waits_has_ten_times_of_it_and_a_minute() -> None:
    me, used = [os.getpid()], time.process_time()
    assert TimeLimit(used / 2).exceeded(me) == f"did not finish within {used / 2:g} s of CPU time"
    code = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert tree.cpu_seconds(me) >= used + 0.4  # of a process that it started, too
    long_ago = time.monotonic() - 10_000
    assert TimeLimit(1_000, long_ago).exceeded(me) == ""  # the machine was busy
    assert TimeLimit(990, long_ago).exceeded(me).startswith("did not finish within 9960 s and computed for ")


# What Windows lacks, as far as Python itself can run without it here.
WITHOUT_FORK = """
import os, signal, sys
for name in ("fork", "mkfifo", "getuid", "killpg", "setpgid"):
    delattr(os, name)
del signal.SIGHUP
sys.modules["resource"] = sys.modules["fcntl"] = None
from gradsmith.cli import main
main()
"""


def test_where_processes_cannot_be_forked_each_subject_starts_its_own(tmp_path: Path) -> None:
    source = "import torch\n" + fault_subjects._CLASS.format(name="Right", forward="pass", backward="pass")
    source += fault_subjects._CLASS.format(name="Wrong", forward="pass", backward="x = x * x")
    source += fault_subjects._CLASS.format(name="Exits", forward="import os; os._exit(7)", backward="pass")
    (tmp_path / "ops.py").write_text(source + fault_subjects._INPUTS.format(names=["Right", "Wrong", "Exits"]))
    call = [sys.executable, "-c", WITHOUT_FORK, "check", "ops.py", "--level", "quick", "--format", "json"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    subjects = {s["name"]: (s["verdict"], s["reason"]) for s in json.loads(done.stdout)["subjects"]}
    assert [subjects[name][0] for name in ("Right", "Wrong", "Exits")] == ["verified", "refuted", "unverified"]
    assert "exited with status 7" in subjects["Exits"][1]


def _case(phase: str, number: int) -> fault_signals.Case:
    return next(c for c in fault_signals.cases() if c.phase == phase and c.number == number)


def test_a_check_that_is_terminated_leaves_nothing_and_prints_what_it_found() -> None:
    outcome = fault_signals.tried(_case("with processes of its own", signal.SIGTERM))
    assert outcome.survived, outcome.words() + outcome.said


QUICK = ("kills its parent", "kills its grandparent", "closes all descriptors", "opens files until it may not",
         "floods the pipes in its run folder", "forks a daemon in a session of its own")  # fmt: skip


def test_faulty_subjects_cost_themselves_only() -> None:
    faults = [fault_subjects.Fault(deed, "forward") for deed in QUICK]
    outcomes = fault_subjects.tried([*faults, fault_subjects.Fault("kills its grandparent", "import")])
    assert [o.words() for o in outcomes if not o.survived] == []


@pytest.mark.deep
@pytest.mark.parametrize("case", fault_signals.cases(), ids=lambda case: case.name)
def test_every_signal_in_every_phase(case: fault_signals.Case) -> None:
    outcome = fault_signals.tried(case)
    assert outcome.survived, outcome.words() + outcome.said


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, len(fault_subjects.cases()), 12))
def test_every_fault(first: int) -> None:
    outcomes = fault_subjects.tried(fault_subjects.cases()[first : first + 12])
    assert [o.words() for o in outcomes if not o.survived] == []


@pytest.mark.deep
def test_a_killed_check_takes_all_of_its_processes_and_its_folder_along() -> None:
    with ground() as place:
        (place.files / "subject.py").write_text(fault_signals._source("with processes of its own"))
        reached = place.folder / "reached"
        with place.start("check", "subject.py", REACHED=str(reached)) as process:
            while not reached.exists():
                time.sleep(0.05)
            process.kill()
        outcome = place.left(fault_signals.Outcome("killed"))
        assert outcome.survived, outcome.words()

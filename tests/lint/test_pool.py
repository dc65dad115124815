"""Linting in several processes: the same findings, nothing lost when one of them dies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradsmith.catalog import rules
from gradsmith.linting.first_look import Wanted
from gradsmith.linting.pool import Queue
from gradsmith.source import scan

# Two processes, and each gets every other number. Left to the scheduler, one of them may have taken all before the
# other has begun.
TWO_PROCESSES = """
import json, os, pathlib, sys
import gradsmith as gs
from gradsmith.linting import apart, first_look, pool, run, scout

here = os.getpid()
apart.PAYS_FROM = 10
pool.processors = lambda: 2


class Dealt:
    def __init__(self, numbers=None, queue=pool.Queue):
        self.queues = queue(), queue()
        if numbers is not None:
            self.fill(numbers)

    def __setattr__(self, name, value):
        if name == "numbers":
            for start, queue in enumerate(self.queues):
                queue.numbers = value[start::2]
        else:
            vars(self)[name] = value

    def fill(self, numbers):
        for start, queue in enumerate(self.queues):
            queue.fill(numbers[start::2])

    def only_take(self):
        for queue in self.queues:
            queue.only_take()

    def __iter__(self):
        return iter(self.queues[os.getpid() != here])

    def close(self):
        for queue in self.queues:
            queue.close()


pool.Queue = Dealt
"""


def in_two_processes(code: str, *args: object) -> str:
    """What the code prints in a fresh interpreter, because this one has loaded torch and must not fork."""
    words = [sys.executable, "-c", TWO_PROCESSES + code, *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_processes_find_what_one_finds(tmp_path: Path) -> None:
    for number in range(30):
        text = rules()["inplace-grad"].bad + rules()["return-count"].bad.replace("\nimport torch\n", "")
        (tmp_path / f"ops{number}.py").write_text(text)
    code = (
        "pool.processors = lambda: int(sys.argv[2]); used = []\n"
        "fork = os.fork; os.fork = lambda: used.append(1) or fork()\n"
        "report = gs.lint(sys.argv[1]); print(json.dumps([len(used), report.to_dict()]))"
    )
    answers = [json.loads(in_two_processes(code, tmp_path, count)) for count in (2, 1)]
    assert [forks for forks, _ in answers] == [2, 0]  # one goes ahead, one shares the rules
    assert answers[0][1] == answers[1][1]
    assert len(answers[0][1]["findings"]) == 60


def test_a_share_whose_process_dies_is_done_here() -> None:
    code = (
        "def second():\n    if os.getpid() != here: os._exit(3)\n    return 'second'\n"
        "print(*pool.side_by_side([lambda: 'first', second]))"
    )
    assert in_two_processes(code).split() == ["first", "second"]


def test_files_of_a_process_that_dies_are_linted_here(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"ops{number}.py").write_text(rules()["inplace-grad"].bad)
    code = (
        "lint_file = run.Run.lint_file; taken = []\n"
        "def dying(self, file):\n"
        "    if os.getpid() != here and taken: os._exit(3)\n"
        "    taken.append(file); lint_file(self, file)\n"
        "run.Run.lint_file = dying\n"
        "report = gs.lint(sys.argv[1]); print(len(report.findings), report.functions, len(report.skipped))"
    )
    assert in_two_processes(code, tmp_path).split() == ["30", "30", "0"]


def test_what_the_process_that_went_ahead_took_is_looked_at_here_when_it_dies(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"ops{number}.py").write_text(rules()["inplace-grad"].bad)
    code = (
        "add = first_look.FirstLook.add; seen = []\n"
        "def dying(*given):\n"
        "    if os.getpid() != here and seen: os._exit(3)\n"
        "    seen.append(given); add(*given)\n"
        "if sys.argv[2] == 'looking': first_look.FirstLook.add = dying\n"
        "if sys.argv[2] == 'finding': scout._go_ahead = lambda *given: os._exit(3)\n"
        "report = gs.lint(sys.argv[1]); print(len(report.findings), report.functions, len(report.skipped))"
    )
    for when in ("looking", "finding"):
        assert in_two_processes(code, tmp_path, when).split() == ["30", "30", "0"]


def test_a_queue_gives_each_number_once() -> None:
    numbers = list(range(30_000, 0, -1))  # more than a pipe takes one by one
    queue = Queue(numbers)
    first, second = iter(queue), iter(queue)
    taken = [next(source) for source in (first, second, first)] + list(second) + list(first)
    queue.close()
    assert sorted(taken) == sorted(numbers)
    empty = Queue([])
    assert list(empty) == []
    empty.close()


def test_a_file_that_changes_in_between_is_skipped_and_said_so(tmp_path: Path) -> None:
    """Another process looked at it first; what it saw no longer holds."""
    for number in range(30):
        (tmp_path / f"ops{number}.py").write_text(rules()["inplace-grad"].bad)
    (tmp_path / "derived.py").write_text(
        "from ops1 import *\nfrom ops3 import Double\n\n\nclass Own(Double):\n    pass\n"
    )
    code = (
        "looked_at = run.looked_at\n"
        "def then_change(*given):\n"
        "    seen = looked_at(*given)\n"
        "    for path in pathlib.Path(sys.argv[1]).glob('ops*.py'): path.write_text('x = 1')\n"
        "    return seen\n"
        "run.looked_at = then_change\n"
        "report = gs.lint(sys.argv[1]); print(len(report.findings), *sorted({s.reason for s in report.skipped}))"
    )
    found, _, reasons = in_two_processes(code, tmp_path).partition(" ")
    assert 0 < int(found) < 30  # those that this process had read keep their text
    assert reasons.strip() == "changed while it was being linted"


def test_a_process_with_any_thread_does_not_fork() -> None:
    """Python 3.12 warns of it. Threads that `threading` did not start count, too (execnet's, an editor's)."""
    code = (
        "import _thread, time\nrunning = _thread.allocate_lock()\nrunning.acquire()\n"
        "_thread.start_new_thread(lambda: (running.release(), time.sleep(60)), ())\nrunning.acquire()\n"
        "from gradsmith.linting import pool\nprint(pool.processors())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("tests/ops.py", "def test_cube(): ...", {"def test_"}),
        ("src/ops.py", "def test_cube(): ...", set()),
        ("src/ops.py", "@triton.jit\ndef add(x): ...", {"@triton.jit"}),
        ("src/ops.py", "@cache\n@jit\ndef add(x): ...", {"@jit"}),
        ("src/ops.py", "x = 1  # noqa: GS202", set()),
        ("src/ops.py", "loss.backward()  # noqa: GS202", {".backward(", "noqa: GS"}),
        ("src/ops.py", "import triton\nadd = torch.jit.script(x)", set()),
        ("src/ops.py", "no_grad\nloss.backward()\nx.register_hook(f)", {".backward(", ".register_hook("}),
    ],
)
def test_a_file_promises_what_rules_ask_for(path: str, text: str, found: set[str]) -> None:
    wanted = Wanted.by(list(rules().values()))
    assert wanted.in_bytes(scan.SourceFile(path, text.encode())).words == found

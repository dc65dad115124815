"""Linting in several processes: the same findings, nothing lost when one of them dies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from gradsmith.catalog import rules
from gradsmith.linting.pool import Queue


def test_processes_find_what_one_finds(tmp_path: Path) -> None:
    """In a fresh interpreter, because this one has loaded torch and must not fork."""
    for number in range(30):
        text = rules()["inplace-grad"].bad + rules()["return-count"].bad.replace("\nimport torch\n", "")
        (tmp_path / f"ops{number}.py").write_text(text)
    code = (
        "import json, sys, gradsmith as gs; from gradsmith.linting import first_look, pool\n"
        "pool.PAYS_FROM = first_look.PAYS_FROM = int(sys.argv[2]); pool.processors = lambda: 2; used = []\n"
        "split = pool.side_by_side; pool.side_by_side = lambda shares: used.append(len(shares)) or split(shares)\n"
        "report = gs.lint(sys.argv[1]); print(json.dumps([used, report.to_dict()]))"
    )
    answers = []
    for threshold in ("10", "100000"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), threshold], capture_output=True, text=True, check=True
        )
        answers.append(json.loads(done.stdout))
    assert [used for used, _ in answers] == [[2, 2], []]
    assert answers[0][1] == answers[1][1]
    assert len(answers[0][1]["findings"]) == 60


def test_a_share_whose_process_dies_is_done_here() -> None:
    code = (
        "import os; from gradsmith.linting import pool; here = os.getpid()\n"
        "def second():\n    if os.getpid() != here: os._exit(3)\n    return 'second'\n"
        "print(pool.side_by_side([lambda: 'first', second]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["['first',", "'second']"]


def test_files_of_a_process_that_dies_are_linted_here(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"ops{number}.py").write_text(rules()["inplace-grad"].bad)
    code = (
        "import os, sys, gradsmith as gs; from gradsmith.linting import first_look, pool, run; here = os.getpid()\n"
        "pool.PAYS_FROM = 10; pool.processors = lambda: 2; lint_file = run.Run.lint_file; taken = []\n"
        "def dying(self, file):\n"
        "    if os.getpid() != here and taken: os._exit(3)\n"
        "    taken.append(file); lint_file(self, file)\n"
        "run.Run.lint_file = dying\n"
        "report = gs.lint(sys.argv[1]); print(len(report.findings), report.functions, len(report.skipped))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["30", "30", "0"]


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
        "import pathlib, sys, gradsmith as gs; from gradsmith.linting import first_look, pool, run\n"
        "pool.PAYS_FROM = first_look.PAYS_FROM = 10; pool.processors = lambda: 2; look_at = run.look_at\n"
        "def then_change(*given):\n"
        "    seen = look_at(*given)\n"
        "    for path in pathlib.Path(sys.argv[1]).glob('ops*.py'): path.write_text('x = 1')\n"
        "    return seen\n"
        "run.look_at = then_change\n"
        "report = gs.lint(sys.argv[1]); print(len(report.findings), *sorted({s.reason for s in report.skipped}))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    found, _, reasons = done.stdout.partition(" ")
    assert 0 < int(found) < 30  # those that this process had read keep their text
    assert reasons.strip() == "changed while it was being linted"

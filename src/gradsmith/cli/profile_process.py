"""One subject profiled in a process of its own, and what it is doing shown on a terminal while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gradsmith.findings import GradsmithError
from gradsmith.lab.process import run_folder, tree
from gradsmith.lab.process.channel import read_message
from gradsmith.lab.process.household import environment
from gradsmith.lab.process.stopping import undisturbed
from gradsmith.lab.process.time_limit import waited
from gradsmith.report.escaping import escaped

_MARK = "\x1egradsmith: "  # in front of progress; what user code writes to stderr is not ours to show
_LONGEST_LINE = 1 << 16
_POLL = 0.1


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """A line that says what is being done, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("profiling", total=None)
        yield lambda text: bar.update(task, description=escaped(text))


def profiled(task: dict[str, Any], timeout: float, say: Callable[[str], None]) -> dict[str, Any]:
    """The worker's result. Where it was ended or died, what it had measured before, with a note; else an error."""
    name = task["name"]
    with run_folder.part() as folder:
        asked, answer = folder / "task.json", folder / "result.json"
        asked.write_text(json.dumps({**task, "mark": _MARK, "parent": os.getpid()}), encoding="utf-8")
        words = [
            sys.executable,
            "-m",
            "gradsmith.lab.triton.first",
            "gradsmith.profiling.worker",
            str(asked),
            str(answer),
        ]
        trouble = _run(words, environment(folder), timeout, lambda text: say(f"{name}: {text}"))
        advice = "; give it smaller --inputs, or more time with --timeout" if trouble.startswith("did not") else ""
        result = read_message(answer)
        if result is None:
            raise GradsmithError(f"{name} {trouble or 'sent nothing that can be read'}{advice}")
    if "error" in result:
        raise GradsmithError(result["error"])
    if trouble and result.pop("unfinished", False):
        result["profile"]["notes"].append(f"it {trouble}{advice}; this is what was measured before")
    return result


def _run(words: list[str], environment: Mapping[str, str], timeout: float, say: Callable[[str], None]) -> str:
    """Why the process did not end well, or nothing. All that it started ends with it."""
    last_words: list[str] = []
    with undisturbed():  # `household` ends it if a signal came meanwhile
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            start_new_session=True,
        )

    def listen() -> None:
        assert process.stderr is not None
        while line := process.stderr.readline(_LONGEST_LINE):
            if line.startswith(_MARK):
                say(line.removeprefix(_MARK).strip())
            elif line.strip():
                last_words[:] = [line.strip()]  # the last line of a traceback says what happened

    listener = threading.Thread(target=listen, daemon=True)
    try:
        listener.start()
        late = waited(process, timeout)
    finally:
        with undisturbed():
            tree.end_below(process.pid)
            tree.end([process.pid])
            process.wait()
    listener.join(1.0)
    if late:
        return late
    last = last_words[0] if last_words and process.returncode > 0 else f"exit status {process.returncode}"
    return f"ended the process that profiled it: {last}" if process.returncode else ""

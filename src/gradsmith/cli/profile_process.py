"""One subject profiled in a process of its own, and what it is doing shown on a terminal while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradsmith.findings import GradsmithError
from gradsmith.lab.process.waiting import kept_waiting

_MARK = "\x1egradsmith: "  # in front of progress; what user code writes to stderr is not ours to show


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
        yield lambda text: bar.update(task, description=text)


def profiled(task: dict[str, Any], timeout: float, say: Callable[[str], None]) -> dict[str, Any]:
    """The worker's result. Where it was ended or died, what it had measured before, with a note; else an error."""
    name = task["name"]
    with tempfile.TemporaryDirectory(prefix="gradsmith-") as folder:
        asked, answer = Path(folder) / "task.json", Path(folder) / "result.json"
        asked.write_text(json.dumps({**task, "mark": _MARK}), encoding="utf-8")
        words = [
            sys.executable,
            "-m",
            "gradsmith.lab.triton.first",
            "gradsmith.profiling.worker",
            str(asked),
            str(answer),
        ]
        trouble = _run(words, timeout, lambda text: say(f"{name}: {text}"))
        advice = "; give it smaller --inputs, or more time with --timeout" if trouble.startswith("did not") else ""
        if not answer.is_file():
            raise GradsmithError(f"{name} {trouble}{advice}")
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in result:
        raise GradsmithError(result["error"])
    if trouble and result.pop("unfinished", False):
        result["profile"]["notes"].append(f"it {trouble}{advice}; this is what was measured before")
    return result


def _ends(process: subprocess.Popen[str], timeout: float) -> bool:
    """Whether it ends within its time, which stands still while others have the processor."""
    started, left = time.monotonic(), timeout
    while left > 0:
        try:
            process.wait(left)
            return True
        except subprocess.TimeoutExpired:
            left = timeout - (time.monotonic() - started - kept_waiting(process.pid))
    return False


def _run(words: list[str], timeout: float, say: Callable[[str], None]) -> str:
    """Why the process did not end well, or nothing."""
    last_words: list[str] = []
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
    ) as process:

        def listen() -> None:
            for line in process.stderr or ():
                if line.startswith(_MARK):
                    say(line.removeprefix(_MARK).strip())
                elif line.strip():
                    last_words[:] = [line.strip()]  # the last line of a traceback says what happened

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            if not _ends(process, timeout):
                process.kill()
                return f"did not finish within {timeout:g} s"
        except BaseException:  # Ctrl-C: leave no process behind
            process.kill()
            raise
        listener.join(1.0)
    last = last_words[0] if last_words and process.returncode > 0 else f"exit status {process.returncode}"
    return f"ended the process that profiled it: {last}" if process.returncode else ""

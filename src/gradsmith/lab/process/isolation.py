"""Work on subjects in processes of their own: they may hang, crash or eat memory, and the next one is still worked on.

A parent that has computed must not fork (its thread pools are gone in the child, and the child hangs), so a zygote
forks on its behalf. Resident memory is watched from outside; address space that is only reserved does not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsmith.findings import GradsmithError
from gradsmith.lab.process.stages import guessing_mark, stage_mark
from gradsmith.lab.process.waiting import kept_waiting

_POLL = 0.02


@dataclass(frozen=True)
class Limits:
    """How long and how much one subject may take. While others have the processor its time stands still."""

    seconds: float = 120.0
    bytes: int = 8 << 30


@dataclass(frozen=True)
class Opened:
    """A file or module that a keeper has imported, or why it could not."""

    declared: tuple[str, ...] = ()  # names for which the module declares inputs
    trouble: str = ""
    instead: str = ""  # what was done where the module could not be imported as it stands


@dataclass(frozen=True)
class Ended:
    """How the work on one subject ended: with a result, or by an event (crash, time, memory)."""

    result: dict[str, Any] | None
    event: str = ""
    words: str = ""
    guessing: bool = False  # it was about to try inputs that nobody asked for


class Zygote:
    """A running zygote and the conversation with it. Use it as a context manager."""

    def __init__(self, limits: Limits, worker: str, *, warm: bool = False) -> None:
        self.limits = limits
        self.worker = worker  # the module whose `report_on` does the work
        self.warm = warm  # import the compiler beforehand, for levels that use it
        self.folder = tempfile.TemporaryDirectory(prefix="gradsmith-")
        self.log = str(Path(self.folder.name) / "output.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.cpu_seconds = 0.0  # what the last subject used
        self.hears: Callable[[str], None] | None = None  # is told what is being tried, as it changes
        self.lost = False  # what had imported the file is gone, so that nothing can be asked about it

    def __enter__(self) -> Zygote:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self.folder.cleanup()

    def open(
        self, path: str | None, module: str | None, stubs: Sequence[str] = (), subjects: Sequence[str] = ()
    ) -> Opened:
        """Import one file or module in a process that works on nothing else; `subjects` are wanted of it."""
        self.until_ready()
        self.lost = False
        self._send(path=path, module=module, stubs=list(stubs), subjects=list(subjects), log=self.log)
        keeper = self._reply(["keeper"], None)["keeper"]
        answer = self._reply(["imported", "keeper_exit"], keeper)
        if answer.get("imported"):
            return Opened(tuple(answer["declared"]), answer["trouble"], answer["instead"])
        self._until_free(answer)
        return Opened(trouble=answer.get("error") or _death(answer))

    def ask(self, **task: Any) -> Ended:
        """Work on one subject of what was opened, in a process of its own."""
        if self.lost:
            return Ended(None, "crash", "the process that had imported its file is gone")
        result = Path(self.folder.name) / "result.json"
        result.unlink(missing_ok=True)
        for mark in (guessing_mark(str(result)), stage_mark(str(result))):
            mark.unlink(missing_ok=True)
        self._send(**task, result=str(result))
        started = self._reply(["worker", "keeper_exit"], None)
        if "worker" not in started:
            self.lost = True
            return Ended(None, "crash", f"what imported its file ended: {_death(started)}")
        answer = self._reply(["worker_exit"], started["worker"])
        self.cpu_seconds = float(answer.get("cpu", 0.0))
        if result.is_file():
            return Ended(json.loads(result.read_text(encoding="utf-8")))
        event = answer.get("killed") or "crash"
        words = _death(answer) if event == "crash" else self._limit_text(event)
        return Ended(None, event, words, guessing_mark(str(result)).exists())

    def close(self) -> None:
        """Nothing more is asked about what was opened."""
        if self.lost:
            return
        self._send(done=True)
        self._until_free({})

    def _limit_text(self, event: str) -> str:
        if event == "time":
            return f"did not finish within {self.limits.seconds:g} s (raise the limit with --timeout)"
        return f"grew past {self.limits.bytes / 2**30:.3g} GiB of memory (raise the limit with --memory-limit)"

    def _until_free(self, answer: dict[str, Any]) -> None:
        if "keeper_exit" not in answer:
            self._reply(["keeper_exit"], None)

    def _start(self) -> None:
        request_read, self.requests = os.pipe()
        self.replies, reply_write = os.pipe()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "gradsmith.lab.process.zygote",
                    str(request_read),
                    str(reply_write),
                    self.worker,
                ),
                *(["--warm"] if self.warm else []),
            ],
            pass_fds=(request_read, reply_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        os.close(request_read)
        os.close(reply_write)
        self.buffer = b""
        self.unread: list[dict[str, Any]] = []
        self.ready = False

    def until_ready(self) -> None:
        """Wait for its imports, which take as long as `import torch`; a caller may have other things to do meanwhile."""
        if not self.ready:
            self._reply(["ready"], None)
            self.ready = True

    def _stop(self) -> None:
        if self.process is None:
            return
        for descriptor in (self.requests, self.replies):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()

    def _send(self, **message: Any) -> None:
        os.write(self.requests, json.dumps(message).encode() + b"\n")

    def _reply(self, wanted: list[str], watched: int | None) -> dict[str, Any]:
        """The next reply that has one of the wanted keys, while the watched process is held to its limits."""
        started = time.monotonic()
        killed = ""
        while True:
            *lines, self.buffer = self.buffer.split(b"\n")
            self.unread += [json.loads(text) for text in lines]
            # Not the next one only: a keeper may have imported before the zygote gets to say that it forked it.
            found = next((m for m in self.unread if any(key in m for key in wanted)), None)
            if found is not None:
                self.unread.remove(found)
                return {**found, "killed": killed}
            ready, _, _ = select.select([self.replies], [], [], _POLL)
            if ready:
                piece = os.read(self.replies, 65536)
                if not piece:
                    raise GradsmithError(f"the checking process died: {self._last_words()}")
                self.buffer += piece
            elif watched and not killed:
                self._listen()
                if time.monotonic() - started - kept_waiting(watched) > self.limits.seconds:
                    killed = "time"
                elif _resident(watched) > self.limits.bytes:
                    killed = "memory"
                if killed:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(watched, signal.SIGKILL)

    def _listen(self) -> None:
        if self.hears is not None:
            with contextlib.suppress(OSError, ValueError):  # not there yet, or half written
                self.hears(
                    json.loads(stage_mark(str(Path(self.folder.name) / "result.json")).read_text(encoding="utf-8"))
                )

    def _last_words(self) -> str:
        assert self.process is not None
        self.process.wait()
        said = self.process.stderr.read().decode(errors="replace").strip() if self.process.stderr else ""
        return said.splitlines()[-1] if said else f"exit status {self.process.returncode}"


def _death(answer: dict[str, Any]) -> str:
    if answer.get("killed") == "time":
        return "it did not finish in time"
    status = answer.get("worker_exit", answer.get("keeper_exit", 0))
    if status < 0:
        return f"the process died by {signal.Signals(-status).name}"
    return f"the process ended itself with exit status {status}"


def _resident(pid: int) -> int:
    """Resident bytes of a process, 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0

"""Work on subjects in processes of their own: they may hang, crash or eat memory, and the next one is still worked on.

A parent that has computed must not fork (its thread pools are gone in the child, and the child hangs), so a zygote
forks on its behalf. Memory is watched from outside, that of all a subject started together; address space that is only
reserved does not count. A subject that takes down, stops or silences the processes around it costs itself only: what
does not answer is ended from the outside in, and started again for the next subject.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsmith.findings import GradsmithError
from gradsmith.lab.process import run_folder, tree
from gradsmith.lab.process.channel import LONGEST, Listener, Message, Parted, read_message
from gradsmith.lab.process.household import environment
from gradsmith.lab.process.stages import WHERE, died_at, fault_mark, guessing_mark, stage_mark
from gradsmith.lab.process.stopping import undisturbed
from gradsmith.lab.process.time_limit import TimeLimit

_POLL = 0.02
_SELDOM = 0.1  # between looks at a subject that has run for longer than a second: each reads /proc
_PATIENCE = 120.0  # seconds for a fork, on a machine that is very busy
MOST_PROCESSES = 256  # that one subject may have at a time
_ANSWER = 0.5  # seconds for a late subject to write down the line that is running
_GRACE = 5.0  # seconds in which a process that was ended must have been told of


@dataclass(frozen=True)
class Limits:
    """How long and how much one subject may take."""

    seconds: float = 120.0  # of CPU time; see time_limit.py
    bytes: int = 8 << 30


@dataclass(frozen=True)
class Opened:
    """A file or module that a keeper has imported, or why it could not."""

    declared: tuple[str, ...] = ()  # names for which the module declares inputs
    trouble: str = ""
    instead: str = ""  # what was done where the module could not be imported as it stands
    malformed: str = ""  # why the inputs that it declares cannot be read


@dataclass(frozen=True)
class Ended:
    """How the work on one subject ended: with a result, or by an event (crash, time, memory)."""

    result: dict[str, Any] | None
    event: str = ""
    words: str = ""
    guessing: bool = False  # it was about to try inputs that nobody asked for
    frames: tuple[tuple[str, int, str], ...] = ()  # what was running when a signal ended it: path, line, function


class _Died(Exception):
    """The zygote is gone."""


class Zygote:
    """A running zygote and the conversation with it. Use it as a context manager."""

    def __init__(self, limits: Limits, worker: str, *, warm: bool = False) -> None:
        self.limits = limits
        self.worker = worker  # the module whose `report_on` does the work
        self.warm = warm  # import the compiler beforehand, for levels that use it
        self.folder: Path | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.keeper = 0
        self.cpu_seconds = 0.0  # what the last subject used
        self.on_stage: Callable[[str], None] | None = None  # is told what is being tried, as it changes
        self.stage: Path | None = None  # where the running subject says it
        self.fault: Path | None = None  # where it writes the line that is running, when it is asked
        self.late = ""  # which limit of time the last subject exceeded
        self.lost = False  # what had imported the file is gone, so that nothing can be asked about it
        self.unread: list[Message] = []
        self.interrupted = False

    def __enter__(self) -> Zygote:
        try:
            with undisturbed():
                self._start()
        except BaseException:  # also a signal that came meanwhile: nobody will leave a block that was never entered
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with undisturbed():
            self._stop()

    def open(
        self, path: str | None, module: str | None, stubs: Sequence[str] = (), subjects: Sequence[str] = ()
    ) -> Opened:
        """Import one file or module in a process that works on nothing else; `subjects` are wanted of it."""
        self.wanted: Message = {"path": path, "module": module, "stubs": list(stubs), "subjects": list(subjects)}
        return self._open()

    def _open(self) -> Opened:
        self.until_ready()
        self.lost = False
        try:
            self._tell(**self.wanted)
            self.keeper = self._reply(["keeper"], None, patience=_PATIENCE)["keeper"]
            answer = self._reply(["imported", "keeper_exit"], self.keeper)
            if answer.get("imported"):
                return Opened(tuple(answer["declared"]), answer["trouble"], answer["instead"], answer["malformed"])
            if "keeper_exit" not in answer:
                self._reply(["keeper_exit"], None, patience=_PATIENCE)
        except _Died:
            self._start_again()
            return Opened(trouble="importing it ended the process that checks it")
        return Opened(trouble=answer.get("error") or death(answer))

    def ask(self, **task: Any) -> Ended:
        """Work on one subject of what was opened, in a process of its own."""
        if self.lost:
            opened = self._open()
            if opened.trouble and not opened.instead:
                self.lost = True
                return Ended(None, "crash", f"its file could not be imported again: {opened.trouble}")
        result = self._folder / secrets.token_hex(16)
        try:
            ended = self._asked(task, result)
        except _Died:
            ended = Ended(None, "crash", "it ended the process that checks it")
            self._start_again()
        for left in self._folder.glob(f"{result.name}*"):
            left.unlink(missing_ok=True)
        return ended

    def _asked(self, task: Message, result: Path) -> Ended:
        self.stage, self.fault = stage_mark(str(result)), fault_mark(str(result))
        self._tell(**task, result=str(result), memory=self.limits.bytes)
        started = self._reply(["worker", "keeper_exit"], None, patience=_PATIENCE)
        if "worker" not in started:
            self.lost = True
            return Ended(None, "crash", f"what imported its file ended: {death(started)}")
        answer = self._reply(["worker_exit", "keeper_exit"], started["worker"])
        self.lost = "keeper_exit" in answer
        self.cpu_seconds = float(answer.get("cpu", 0.0))
        if result.is_file() and not self.lost:
            found = read_message(result)
            if found is not None:
                return Ended(found)
            return Ended(None, "crash", f"its report cannot be read, or has more than {LONGEST >> 20} MiB")
        event = answer.get("killed") or "crash"
        if event == "processes":
            return Ended(None, "crash", f"it started more than {MOST_PROCESSES} processes")
        words = self._limit_text(event) if event != "crash" else death(answer)
        if event == "crash" and self.lost:
            words = "it ended the process that had imported the file"
        return Ended(None, event, words, guessing_mark(str(result)).exists(), died_at(str(result)))

    def close(self) -> None:
        """Nothing more is asked about what was opened."""
        if self.lost:
            return
        try:
            self._tell(done=True)
            self._reply(["keeper_exit"], None, patience=_GRACE)
        except _Died:
            self._start_again()

    def interrupt(self) -> None:
        """From another thread: end its process, so that whoever waits for an answer is told at once."""
        self.interrupted = True
        if (process := self.process) is not None:
            tree.end_below(process.pid)
            tree.end([process.pid])

    def _limit_text(self, event: str) -> str:
        if event == "time":
            return f"it {self.late}"
        return f"it used more than {self.limits.bytes / 2**30:.3g} GiB of memory"

    # --- its process ------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.folder = run_folder.new_part()
        nonce = secrets.token_hex(16)
        self.requests = Listener(self._folder / "requests", nonce)
        self.replies = Listener(self._folder / "replies", nonce)
        self.unread, self.ready, self.keeper = [], False, 0
        command = [sys.executable, "-m", "gradsmith.lab.process.zygote", str(self._folder), self.worker]
        command += ["--warm"] if self.warm else []
        self.process = self._started(command, {**environment(self._folder), "PYTHONUNBUFFERED": "1"})
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{nonce}\n".encode())
            self.process.stdin.close()

    def _started(self, command: list[str], surroundings: dict[str, str]) -> subprocess.Popen[bytes]:
        # A session of its own: what a terminal sends to the group (Ctrl-C) comes here alone, and here alone is it answered.
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=surroundings,
            start_new_session=True,
        )

    @property
    def _folder(self) -> Path:
        assert self.folder is not None
        return self.folder

    def until_ready(self) -> None:
        """Wait for its imports, which take as long as `import torch`; a caller may have other things to do meanwhile."""
        if not self.ready:
            try:
                self._reply(["ready"], None)
            except _Died:
                raise GradsmithError(f"the checking process died: {self._last_words()}") from None
            self.ready = True

    def _start_again(self) -> None:
        if self.interrupted:
            raise GradsmithError("interrupted")
        with undisturbed():
            self._stop()
            self._start()
        self.lost = True

    def _stop(self) -> None:
        if self.process is not None:
            tree.end_below(self.process.pid)
            tree.end([self.process.pid])
            self.process.wait()
            if self.process.stderr:
                self.process.stderr.close()
            self.requests.close()
            self.replies.close()
            self.process = None
        if self.folder is not None:
            run_folder.drop(self.folder)
            self.folder = None

    # --- the conversation -------------------------------------------------------------------------------------------

    def _tell(self, **message: Any) -> None:
        """Ask the zygote; it is as good as gone where somebody has removed the folder in which they talk."""
        try:
            self.requests.send(**message)
        except Parted:
            raise _Died from None

    def _reply(self, wanted: Sequence[str], watched: int | None, patience: float | None = None) -> Message:
        """The next reply that has one of the wanted keys, while the watched process is held to its limits.

        `patience` is for what should take no time: after it the keeper is ended, and after twice of it the zygote.
        """
        began = looked = time.monotonic()
        killed = ""
        overdue = began + patience if patience is not None else None
        limit = TimeLimit(self.limits.seconds)
        # What its file started on import is not the subject's.
        spared = set(tree.below(self.keeper)) - {watched, *tree.below(watched)} if watched else set()
        while True:
            # Not the next one only: what ended may have been told of before what was asked for.
            found = next((m for m in self.unread if any(key in m for key in wanted)), None)
            if found is not None:
                self.unread.remove(found)
                return {**found, "killed": killed}
            self.unread += self.replies.arrived(_POLL if watched else _SELDOM)
            if self.process is None or self.process.poll() is not None:
                raise _Died
            if overdue is not None and time.monotonic() > overdue:
                self._end_what_is_silent(time.monotonic() > overdue + _GRACE)
            elif watched and not killed and time.monotonic() > looked + (_POLL if looked < began + 1 else _SELDOM):
                looked = time.monotonic()
                self._tell_stage()
                killed = self._exceeded(watched, limit, spared)
                if killed:
                    if killed == "time":
                        self._ask_where(watched)
                    self._end_all_of(watched)
                    overdue = time.monotonic() + _GRACE

    def _exceeded(self, watched: int, limit: TimeLimit, spared: Collection[int]) -> str:
        # All below the keeper: what a subject started counts, also when it is no longer below the subject.
        pids = [watched, *(pid for pid in tree.below(self.keeper) if pid != watched)]
        if len(pids) > MOST_PROCESSES:
            return "processes"
        self.late = limit.exceeded([pid for pid in pids if pid not in spared])
        if self.late:
            return "time"
        return "memory" if tree.memory(pids, self.limits.bytes) > self.limits.bytes else ""

    def _ask_where(self, watched: int) -> None:
        """Let a subject that is late write down its line, before it is ended; one that cannot answer is not waited for."""
        if WHERE is None or self.fault is None or not self.fault.exists():
            return  # nobody there would answer: the signal would only end it
        with contextlib.suppress(OSError):
            os.kill(watched, WHERE)
            until = time.monotonic() + _ANSWER
            while not self.fault.stat().st_size and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.01)  # it writes line by line

    def _end_all_of(self, watched: int) -> None:
        """The subject and all it started; what its file started on import stays as it is."""
        with contextlib.suppress(OSError):
            os.killpg(watched, signal.SIGKILL)
        tree.end([watched])

    def _end_what_is_silent(self, all_of_it: bool) -> None:
        """A subject can stop its parents, too: then nobody tells that it has ended."""
        assert self.process is not None
        if all_of_it:
            tree.end([self.process.pid])
            self.process.wait()
        elif self.keeper:
            for pid in (self.process.pid, *tree.children(self.process.pid)):  # the process that waits, and the zygote
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
            tree.end([self.keeper])

    def _tell_stage(self) -> None:
        if self.on_stage is not None and self.stage is not None:
            with contextlib.suppress(OSError, ValueError):  # not there yet, or half written
                self.on_stage(json.loads(self.stage.read_text(encoding="utf-8")))

    def _last_words(self) -> str:
        assert self.process is not None
        self.process.wait()
        said = self.process.stderr.read().decode(errors="replace").strip() if self.process.stderr else ""
        return said.splitlines()[-1] if said else f"exit status {self.process.returncode}"


def death(answer: Message) -> str:
    """How a process came to its end, in words."""
    if answer.get("killed"):
        return {"time": "it did not finish in time", "memory": "it took more memory than it may"}.get(
            answer["killed"], f"it started more than {MOST_PROCESSES} processes"
        )
    status = int(answer.get("worker_exit", answer.get("keeper_exit")) or 0)
    return (
        f"the signal {_name(-status)} ended its process"
        if status < 0
        else f"its process exited with status {status}, without a Python exception"
    )


def _name(number: int) -> str:
    try:
        name, words = signal.Signals(number).name, signal.strsignal(number)
        return f"{name} ({words.lower()})" if words else name
    except ValueError:  # a real-time signal
        return f"signal {number}"

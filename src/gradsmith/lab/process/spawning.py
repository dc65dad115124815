"""A zygote for systems on which processes cannot be forked, or not safely (Windows, macOS): every subject starts Python anew.

That takes as long as `import torch` for each of them. What a subject started is ended with it where the system tells what that is.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradsmith.findings import GradsmithError
from gradsmith.lab.process import run_folder, tree
from gradsmith.lab.process.channel import LONGEST, Message, read_message
from gradsmith.lab.process.household import environment
from gradsmith.lab.process.isolation import Ended, Limits, Opened, Zygote, death
from gradsmith.lab.process.stages import guessing_mark, stage_mark
from gradsmith.lab.process.stopping import undisturbed
from gradsmith.lab.process.time_limit import TimeLimit

_POLL = 0.05


def can_fork() -> bool:
    """Whether a process that has imported torch may fork. On macOS the system's own libraries do not survive it."""
    return hasattr(os, "fork") and sys.platform != "darwin"


class Spawner(Zygote):
    """The conversation with a zygote, without one."""

    def _start(self) -> None:
        self.folder = run_folder.new_part()

    def _stop(self) -> None:
        if self.process is not None:
            self._end(self.process)
        if self.folder is not None:
            run_folder.drop(self.folder)
            self.folder = None

    def until_ready(self) -> None:
        return

    def open(
        self, path: str | None, module: str | None, stubs: Sequence[str] = (), subjects: Sequence[str] = ()
    ) -> Opened:
        self.wanted: Message = {"path": path, "module": module, "stubs": list(stubs), "subjects": list(subjects)}
        answer, _, told = self._run({})
        if told is None:
            return Opened(trouble=death(answer))
        if not told["imported"]:
            return Opened(trouble=told["error"])
        return Opened(tuple(told["declared"]), told["trouble"], told["instead"], told["malformed"])

    def ask(self, **task: Any) -> Ended:
        answer, result, _ = self._run(task)
        if result is not None:
            return Ended(result)
        event = answer["killed"] or "crash"
        if event == "crash" and answer["worker_exit"] == 0:
            return Ended(None, "crash", f"its report cannot be read, or has more than {LONGEST >> 20} MiB")
        words = death(answer) if event == "crash" else self._limit_text(event)
        return Ended(None, event, words, bool(answer["guessing"]))

    def close(self) -> None:
        return

    def interrupt(self) -> None:
        self.interrupted = True
        if (process := self.process) is not None:
            self._end(process)

    def _run(self, task: Message) -> tuple[Message, Message | None, Message | None]:
        """(how it ended, the report, what was told about the file)."""
        if self.interrupted:
            raise GradsmithError("interrupted")
        with run_folder.part() as folder:
            result, told = folder / secrets.token_hex(16), folder / "opened.json"
            self.stage = stage_mark(str(result))
            written = folder / "task.json"
            given = {**self.wanted, **task, "result": str(result), "opened": str(told), "memory": self.limits.bytes}
            written.write_text(json.dumps(given))
            with undisturbed():
                self.process = process = subprocess.Popen(
                    [sys.executable, "-m", "gradsmith.lab.process.spawned", str(written), self.worker],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=dict(environment(folder)),
                    start_new_session=True,
                )
            try:
                killed = self._watched(process)
            finally:
                with undisturbed():
                    self._end(process)
                    self.process = None
            ended = {
                "worker_exit": process.returncode,
                "killed": killed,
                "guessing": guessing_mark(str(result)).exists(),
            }
            return ended, read_message(Path(result)), read_message(told)

    def _watched(self, process: subprocess.Popen[bytes]) -> str:
        """The limit that it exceeded, or nothing."""
        limit = TimeLimit(self.limits.seconds)
        while process.poll() is None:
            self._tell_stage()
            pids = [process.pid, *tree.below(process.pid)]
            self.cpu_seconds = limit.computed
            self.late = limit.exceeded(pids)
            if self.late:
                return "time"
            if tree.memory(pids, self.limits.bytes) > self.limits.bytes:
                return "memory"
            time.sleep(_POLL)
        return ""

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if hasattr(os, "killpg"):
            tree.end_below(process.pid)
            tree.end([process.pid])
        elif process.poll() is None:
            process.kill()
        process.wait()


def new_zygote(limits: Limits, worker: str, *, warm: bool = False) -> Zygote:
    """What runs subjects on this system."""
    return (Zygote if can_fork() else Spawner)(limits, worker, warm=warm)

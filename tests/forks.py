"""`python ...` in a process of its own that starts with torch and gradsmith imported: forked, not started.

Importing takes two seconds, and most tests that need a process of their own (it exits, is killed, runs a script) are about
something else. The processes that gradsmith starts from there (zygotes, profiles) are forked in the same way. Tests of starting
itself, of what is imported, and of terminals start a real one.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from gradsmith.lab.process.tree import is_running


@dataclass
class Started:
    """A process that was forked elsewhere, so that it is no child of this one."""

    pid: int
    stdin: IO[bytes]
    stderr: None = None
    returncode: int = 0

    def poll(self) -> int | None:
        return None if is_running(self.pid) else self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.002)
        return self.returncode


class Forks:
    """Runs `python WORDS` as `subprocess.run` would, in a fork of a process that is started when it is first needed."""

    def __init__(self) -> None:
        self.server: subprocess.Popen[str] | None = None
        self.lock = threading.Lock()

    def run(
        self, *words: Any, cwd: Path | str | None = None, env: dict[str, str] | None = None, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("in", "out", "err")]
            for file in files:
                file.touch()
            asked = {"words": words, "cwd": cwd or Path.cwd(), "env": dict(env or os.environ), "timeout": timeout}
            status = self._ask(**asked, folder=folder, wait=True)
            out, err = (file.read_text(encoding="utf-8") for file in files[1:])
        return subprocess.CompletedProcess([sys.executable, *map(str, words)], status, out, err)

    def start(self, *words: Any, env: dict[str, str]) -> Started:
        """As `subprocess.Popen` with a pipe to its standard input; what it prints is dropped."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(Path(folder) / "in")
            for name in ("out", "err"):
                (Path(folder) / name).symlink_to(os.devnull)
            pid = self._ask(words=words, cwd=Path.cwd(), env=env, timeout=0, folder=folder, wait=False)
            # Opening waits until the process has opened its end; then it has opened all of them, or will not need the others.
            return Started(pid, open(Path(folder) / "in", "wb", buffering=0))

    def _ask(self, **asked: Any) -> int:
        with self.lock:
            # A command that ran in this process has ended what was started meanwhile.
            if self.server is None or self.server.poll() is not None:
                call = [sys.executable, str(Path(__file__).parent / "fork_server.py")]
                self.server = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                assert self._answer() == "ready"
            assert self.server.stdin is not None
            print(json.dumps(asked, default=str), file=self.server.stdin, flush=True)
            return int(self._answer())

    def _answer(self) -> str:
        assert self.server is not None and self.server.stdout is not None
        return self.server.stdout.readline().strip()

    def end(self) -> None:
        if self.server is not None:
            for end in (self.server.stdin, self.server.stdout):
                assert end is not None
                with contextlib.suppress(OSError):
                    end.close()
            # Whatever was started meanwhile may hold the other end of the pipe, so that its end never comes.
            self.server.kill()
            self.server.wait()


FORKS = Forks()


@pytest.fixture(scope="session", autouse=True)
def _forks_end() -> Iterator[None]:
    yield
    FORKS.end()


@pytest.fixture(scope="session")
def forks(_own_cache: None) -> Forks:
    """`forks.run("-m", "gradsmith", "record", ...)`."""
    return FORKS

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Forks:
    """Runs `python WORDS` as `subprocess.run` would, in a fork of a process that is started when it is first needed."""

    def __init__(self) -> None:
        self.server: subprocess.Popen[str] | None = None

    def run(
        self, *words: Any, cwd: Path | str | None = None, env: dict[str, str] | None = None, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        if self.server is None:
            call = [sys.executable, str(Path(__file__).parent / "fork_server.py")]
            self.server = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self._answer() == "ready"
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("in", "out", "err")]
            for file in files:
                file.touch()
            asked = {"words": [str(word) for word in words], "cwd": str(cwd or Path.cwd()), "folder": folder}
            asked["timeout"] = timeout
            assert self.server.stdin is not None
            print(json.dumps({**asked, "env": dict(env or os.environ)}), file=self.server.stdin, flush=True)
            status = int(self._answer())
            out, err = (file.read_text(encoding="utf-8") for file in files[1:])
        return subprocess.CompletedProcess([sys.executable, *map(str, words)], status, out, err)

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

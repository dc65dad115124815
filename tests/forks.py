"""`python ...` in a process of its own that starts with torch and gradsmith imported: forked, not started.

Importing takes two seconds, and most tests that need a process of their own (it exits, is killed, runs a script) are about
something else. Tests of starting itself, of what is imported, and of terminals start a real one.
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

# The parent never computes, so that a fork inherits no thread and no lock. The child leaves the loop and runs to the end
# of the script: what it raises, and how it exits, is Python's own doing.
SERVER = """
import json, os, runpy, sys
import torch, gradsmith
from gradsmith import catalog
from gradsmith.checking import run
from gradsmith.lab.process import zygote
zygote._warm_up(zygote._COMPILER)
catalog.rules()
answers = os.fdopen(os.dup(1), "w")
print("ready", file=answers, flush=True)
while True:
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    asked = json.loads(line)
    pid = os.fork()
    if not pid:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=answers, flush=True)
for number, (name, flags) in enumerate([("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY)]):
    os.dup2(os.open(os.path.join(asked["folder"], name), flags), number)
answers.close()
sys.stdin = os.fdopen(0, "r", closefd=False)
os.environ.clear()
os.environ.update(asked["env"])
os.chdir(asked["cwd"])
if "multiprocessing.process" in sys.modules:  # it was imported elsewhere, and looks for a script there
    sys.modules["multiprocessing.process"].ORIGINAL_DIR = os.getcwd()
sys.path[1:1] = [p for p in asked["env"].get("PYTHONPATH", "").split(os.pathsep) if p and p not in sys.path]
kind, *words = asked["words"]
if kind == "-m":
    sys.argv, sys.path[0] = words, os.getcwd()
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
elif kind == "-c":
    sys.argv = ["-c", *words[1:]]
    exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
else:
    sys.argv, sys.path[0] = asked["words"], os.path.dirname(os.path.abspath(kind))
    runpy.run_path(kind, run_name="__main__")
"""


class Forks:
    """Runs `python WORDS` as `subprocess.run` would, in a fork of a process that is started when it is first needed."""

    def __init__(self) -> None:
        self.server: subprocess.Popen[str] | None = None

    def run(
        self, *words: Any, cwd: Path | str | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        if self.server is None:
            call = [sys.executable, "-c", SERVER]
            self.server = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self._answer() == "ready"
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("in", "out", "err")]
            for file in files:
                file.touch()
            asked = {"words": [str(word) for word in words], "cwd": str(cwd or Path.cwd()), "folder": folder}
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


@pytest.fixture(scope="session")
def forks(_own_cache: None) -> Iterator[Forks]:
    """`forks.run("-m", "gradsmith", "record", ...)`."""
    made = Forks()
    yield made
    made.end()

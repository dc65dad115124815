"""One call of gradsmith under a fault, and what it leaves behind: processes, folders, the results of others."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = os.environ.get("GRADSMITH_SOURCE")  # another checkout's `src`, to compare with
_MARK = "GRADSMITH_FAULT_RUN"
_MOST = 600  # processes of one run
_SETTLED = 3.0  # seconds in which what was ended must be gone


@dataclass
class Outcome:
    """What became of one case. `trouble` says why it did not survive."""

    name: str
    trouble: str = ""
    orphans: int = 0
    folders: int = 0
    lost: int = 0
    said: str = ""

    @property
    def survived(self) -> bool:
        return not (self.trouble or self.orphans or self.folders or self.lost)

    def words(self) -> str:
        parts = [self.trouble] if self.trouble else []
        parts += [
            f"{n} {what}"
            for n, what in ((self.orphans, "orphans"), (self.folders, "folders"), (self.lost, "lost"))
            if n
        ]
        return f"{self.name}: {'; '.join(parts) or 'survived'}"


# The command, but that what only waits is ended after the limit itself: a benchmark with fifty sleepers has not the hour.
_COMMAND = """
import sys
from gradsmith.cli import main
if sys.argv[1] == "check":
    from gradsmith.lab.process import time_limit
    time_limit.TIMES, time_limit.MORE = 1.0, 1.0
main()
"""


@dataclass
class Ground:
    """A folder with a place for files and one for temporary files, and a mark in the environment of all that runs on it."""

    folder: Path
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def environment(self, **more: str) -> dict[str, str]:
        own = {_MARK: self.mark, "TMPDIR": str(self.temporary), "GRADSMITH_CACHE_DIR": str(self.cache)}
        own |= {"TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
        if SOURCE:
            own["PYTHONPATH"] = SOURCE
        return {**os.environ, **own, **more}

    def start(self, *words: str, streams: int = subprocess.PIPE, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *words],
            cwd=self.files,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=streams,
            stderr=streams,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            start_new_session=True,
            preexec_fn=_answers_signals,
        )

    def run(self, *words: str, seconds: float = 300.0, **more: str) -> subprocess.CompletedProcess[str]:
        with self.start(*words, **more) as process:
            until = time.monotonic() + seconds
            while True:
                try:
                    out, err = process.communicate(timeout=0.5)
                    break
                except subprocess.TimeoutExpired:
                    # This machine comes first: a fault that gets out of hand is ended with all of its processes.
                    if time.monotonic() > until or len(self.marked()) > _MOST:
                        self.end_all()
                        out, err = process.communicate()
                        err += "\nfaults: it was ended: too long, or too many processes"
                        break
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def marked(self) -> list[int]:
        """Processes that carry the mark and still run."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                with contextlib.suppress(OSError):
                    if f"{_MARK}={self.mark}".encode() in Path(f"/proc/{entry}/environ").read_bytes():
                        found.append(int(entry))
        return found

    def end_all(self) -> None:
        while pids := self.marked():
            for pid in pids:
                with contextlib.suppress(OSError):
                    group = os.getpgid(pid)
                    # A group at once: what forks meanwhile is in it.
                    (os.killpg if group in pids else os.kill)(group if group in pids else pid, signal.SIGKILL)
            time.sleep(0.02)

    def left(self, outcome: Outcome) -> Outcome:
        """Note what is still there; it is ended and removed then."""
        until = time.monotonic() + _SETTLED
        while self.marked() and time.monotonic() < until:
            time.sleep(0.05)
        outcome.orphans = len(self.marked())
        self.end_all()
        outcome.folders = len(list(self.temporary.iterdir()))
        return outcome


def _answers_signals() -> None:
    """A shell that starts something in the background has it ignore Ctrl-C, which would be inherited."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def ground() -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    made = Ground(folder)
    for part in (made.files, made.temporary, made.cache):
        part.mkdir()
    try:
        yield made
    finally:
        made.end_all()
        subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", str(folder)], check=False)  # shutil recurses, and one of the cases is deep

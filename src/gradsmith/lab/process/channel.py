"""How the processes of a check talk: messages are small files, and a line in a named pipe says that one is there.

Nobody keeps a pipe open while user code runs: it is opened by name, used, and closed. So user code inherits nothing that it
could close, fill or write into by accident. A line counts only with the nonce of the run, and a message only up to a size.
A nonce guards against accidents; code that means to deceive can read the memory of its own process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import select
import stat
from pathlib import Path
from typing import Any

Message = dict[str, Any]
LONGEST = 64 << 20  # bytes of one message
_LINE = 4096  # what a pipe takes at once, so that lines of several writers never mix
_NAME = re.compile(r"[0-9a-f]{32}")
# No link, no pipe that waits for a writer, nothing that a child inherits: as far as the system knows these words.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Parted(Exception):
    """The other side is gone."""


def read_message(path: Path) -> Message | None:
    """A message that somebody wrote, or None where it is anything else: missing, special, too long, not JSON."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def write_message(path: Path, text: str) -> None:
    """At once or not at all."""
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(text, encoding="utf-8")
    partial.rename(path)


class Channel:
    """One direction: a named pipe in a folder, and the files beside it."""

    def __init__(self, pipe: Path, nonce: str) -> None:
        self.pipe, self.nonce = pipe, nonce

    def send(self, **message: Any) -> None:
        """Tell the other side; raises `Parted` where nobody listens any more."""
        name = secrets.token_hex(16)
        try:
            write_message(self.pipe.parent / name, json.dumps(message))
            descriptor = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            raise Parted from None
        try:
            os.set_blocking(descriptor, True)
            # It begins a line of its own, whatever else somebody left in the pipe.
            os.write(descriptor, f"\n{self.nonce} {name}\n".encode())
        finally:
            os.close(descriptor)

    def receive(self) -> Message:
        """Wait for the next message; raises `Parted` when the parent of this process is gone."""
        parent = os.getppid()
        while True:
            message = self._message(self._line(parent))
            if message is not None:
                return message

    def _line(self, parent: int) -> bytes:
        descriptor = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        data = bytearray()
        try:
            while not data.endswith(b"\n"):
                if not select.select([descriptor], [], [], 1.0)[0]:
                    if os.getppid() != parent:
                        raise Parted
                    continue
                piece = os.read(descriptor, 1)  # no more: the rest may be for the next reader
                if not piece:
                    raise Parted
                data += piece
        finally:
            os.close(descriptor)
        return bytes(data)

    def _message(self, line: bytes) -> Message | None:
        nonce, _, name = line.decode("ascii", "replace").strip().partition(" ")
        if not secrets.compare_digest(nonce.encode(), self.nonce.encode()) or not _NAME.fullmatch(name):
            return None
        path = self.pipe.parent / name
        found = read_message(path)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        return found


class Listener(Channel):
    """The reading end of a channel in the process that owns the folder: open all the time, and never waiting."""

    def __init__(self, pipe: Path, nonce: str) -> None:
        super().__init__(pipe, nonce)
        os.mkfifo(pipe, 0o600)
        # For writing, too: else the pipe would end with every writer, and could not be opened before the first.
        self.descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.buffer = b""

    def arrived(self, seconds: float) -> list[Message]:
        """What came within this time; lines that are not ours are dropped."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return []
        with contextlib.suppress(BlockingIOError):
            self.buffer += os.read(self.descriptor, 1 << 16)
        *lines, self.buffer = self.buffer.split(b"\n")
        if len(self.buffer) > _LINE:
            self.buffer = b""
        return [message for line in lines if (message := self._message(line[:_LINE])) is not None]

    def close(self) -> None:
        os.close(self.descriptor)

"""The server's end of the linter: starts it, asks it, and starts it again where a text has ended it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from typing import Any

from gradsmith.findings import GradsmithError

_LONGEST_S = 30.0  # for one answer; 1,000 lines take 0.04 s


class LintProcess:
    """Answers questions one after the other. Started before the server has loaded its own library."""

    def __init__(self) -> None:
        self._process = self._started()
        self._turn: asyncio.Lock | None = None
        self._count = 0

    async def ask(self, **task: Any) -> Any:
        """The answer of the linter; a GradsmithError says what went wrong in it."""
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            self._count += 1
            line = json.dumps({"id": self._count, **task}).encode() + b"\n"
            loop = asyncio.get_running_loop()
            reply = await loop.run_in_executor(None, self._exchange, line)
        if reply is None:
            raise GradsmithError(
                "the text ended the process that reads it, or took too long: it may be nested too deeply"
            )
        if "error" in reply:
            raise GradsmithError(f"gradsmith failed: {reply['error']}")
        return reply["answer"]

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _exchange(self, line: bytes) -> dict[str, Any] | None:
        """Send one line and wait for its answer; None where the process ended instead. The next one gets a new process."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        patience = threading.Timer(_LONGEST_S, self._process.kill)
        patience.start()
        try:
            stdin.write(line)
            stdin.flush()
            said = stdout.readline()
        except OSError:
            said = b""
        finally:
            patience.cancel()
        if said.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(said)
            return reply
        self.close()
        self._process = self._started()
        return None

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "gradsmith.server.linter"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

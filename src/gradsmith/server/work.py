"""Run a worker and listen to it: what it tries is told as it comes, and whoever cancels ends it in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from gradsmith.findings import GradsmithError

_PATIENCE_S = 10.0  # for a worker to clear up after itself
_LONGEST_LINE = 64 << 20


async def work(task: dict[str, Any], folder: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """What the worker came to. A GradsmithError holds the sentence by which it refused."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gradsmith.server.worker"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
        limit=_LONGEST_LINE,
    )
    try:
        return await _answer(process, {**task, "parent": os.getpid()}, tell)
    finally:
        await asyncio.shield(_ended(process))


async def _answer(
    process: asyncio.subprocess.Process, task: dict[str, Any], tell: Callable[[str], None]
) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(task).encode() + b"\n")
    while line := await process.stdout.readline():
        said = json.loads(line)
        if "say" in said:
            tell(said["say"])
        elif "refused" in said:
            raise GradsmithError(said["refused"])
        else:
            done: dict[str, Any] = said["done"]
            return done
    raise GradsmithError(f"the process that runs it ended with status {await process.wait()}")


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Ask it to stop; whatever does not stop in time is killed, and Linux ends what it started."""
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE_S)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()

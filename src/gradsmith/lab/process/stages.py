"""How far an isolated subject came, for a parent that only sees it die: marks beside the result it will never write."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
from pathlib import Path
from typing import TextIO

_faults: list[TextIO] = []  # open for as long as the process lives: Python writes into it while it dies
_result: list[str] = []  # where this process, a worker, has to write its result


def guessing_mark(result: str) -> Path:
    """The file that exists once inputs had to be guessed."""
    return Path(f"{result}.guessed")


def stage_mark(result: str) -> Path:
    """The file that says what is being tried just now."""
    return Path(f"{result}.stage")


def fault_mark(result: str) -> Path:
    """The file that has the stack, once a signal has ended the process, or `WHERE` has asked for it."""
    return Path(f"{result}.fault")


# Asks a process what is running: faulthandler answers from the signal handler, also inside compiled code.
WHERE = getattr(signal, "SIGUSR1", None) if hasattr(faulthandler, "register") else None
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.M)


def died_at(result: str) -> tuple[tuple[str, int, str], ...]:
    """Path, line and function of what was running when the process was ended, the innermost first."""
    try:
        text = fault_mark(result).read_bytes().decode(errors="replace")
    except OSError:
        return ()
    return tuple((path, int(line), name) for path, line, name in _FRAME.findall(text))


def trying(what: str) -> None:
    """Say what this process is about to try; nothing happens where nobody watches it."""
    for result in _result:
        # One line over the other, for as many times as there are checks: no file is cut off and made again.
        line = json.dumps(what).encode()
        descriptor = os.open(f"{result}.stage", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
            os.ftruncate(descriptor, len(line))
        finally:
            os.close(descriptor)


def works_on(result: str) -> None:
    _result[:] = [result]
    for old in _faults:
        old.close()
    _faults[:] = [fault_mark(result).open("w", encoding="utf-8")]
    faulthandler.enable(_faults[0], all_threads=False)
    if WHERE is not None:
        faulthandler.register(WHERE, _faults[0], all_threads=False)


def inputs_are_guessed() -> None:
    for result in _result:
        guessing_mark(result).touch()

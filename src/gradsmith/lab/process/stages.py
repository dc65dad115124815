"""How far an isolated subject came, for a parent that only sees it die: a mark beside the result it will never write."""

from __future__ import annotations

import json
from pathlib import Path

_result: list[str] = []  # where this process, a worker, has to write its result


def guessing_mark(result: str) -> Path:
    """The file that exists once inputs had to be guessed."""
    return Path(f"{result}.guessed")


def stage_mark(result: str) -> Path:
    """The file that says what is being tried just now."""
    return Path(f"{result}.stage")


def trying(what: str) -> None:
    """Say what this process is about to try; nothing happens where nobody watches it."""
    for result in _result:
        stage_mark(result).write_text(json.dumps(what), encoding="utf-8")


def works_on(result: str) -> None:
    _result[:] = [result]


def inputs_are_guessed() -> None:
    for result in _result:
        guessing_mark(result).touch()

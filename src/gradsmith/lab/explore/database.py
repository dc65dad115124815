"""Failing examples of earlier runs, tried again: kept as moves, in the user's cache folder, one file for each.

A subject is known by its name and its file's path, not by its content: one that was mended meets its old failure first. What
this version would not try on the example proves nothing and is left alone, so that a false alarm which was mended in
gradsmith does not live on in a cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsmith.lab.explore.move import Move, as_json
from gradsmith.lab.explore.replay import from_json
from gradsmith.lab.explore.trial import Trial
from gradsmith.lab.lab import Lab
from gradsmith.storage import cache_folder, read_whole, write_whole

_MOST = 32  # for one subject
_FORGOTTEN = 2  # runs in a row in which an example did not fail


@dataclass(frozen=True)
class StoredFailure:
    """An example that failed once: its moves, and the seed of what they draw."""

    moves: tuple[Move, ...]
    seed: int
    right: int = 0  # runs in a row in which it has not failed since
    file: Path | None = None


def failures(
    lab: Lab, planned: Collection[Move], searched: Callable[[Sequence[Move]], bool] = lambda moves: False
) -> list[StoredFailure]:
    """What failed on this example earlier and can be tried on it now, the latest first.

    `searched` says of moves that nobody plans whether a search may come to them again.
    """
    folder = _folder(lab)
    found = [_read(path) for path in _latest_first(folder)] if folder is not None else []
    mine = [f for f, number in filter(None, found) if number == lab.number]
    return [f for f in mine if all(m in planned or searched([m]) for m in f.moves)]


def judged(failure: StoredFailure, trial: Trial) -> None:
    """Note what became of it: what does not fail in two runs in a row is forgotten."""
    if failure.file is None or (trial.bad and not failure.right):
        return
    right = 0 if trial.bad else failure.right + 1
    if right >= _FORGOTTEN:
        with contextlib.suppress(OSError):
            failure.file.unlink(missing_ok=True)
        return
    stored = _stored(failure.file)
    if stored is not None:
        write_whole(failure.file, json.dumps({**stored, "right": right}).encode())


def keep(lab: Lab, failing: Iterable[tuple[Trial, int]]) -> None:
    """Store these examples, each with its seed. What JSON cannot hold is not kept."""
    folder = _folder(lab)
    if folder is None:
        return
    for trial, seed in failing:
        try:
            what = {"moves": [as_json(move) for move in trial.moves], "example": lab.number}
            text = json.dumps(what, sort_keys=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except (TypeError, ValueError, OSError):
            continue
        file = folder / f"{_digest(text)}.json"
        if read_whole(file) is None:
            write_whole(file, json.dumps({**what, "seed": seed, "right": 0}).encode())
    for path in list(_latest_first(folder))[_MOST:]:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _read(file: Path) -> tuple[StoredFailure, int] | None:
    """The failure, and the number of the example on which it failed; None where the file is no such thing."""
    stored = _stored(file)
    try:
        if stored is None:
            return None
        moves = tuple(from_json(move) for move in stored["moves"])
        return StoredFailure(moves, int(stored["seed"]), int(stored["right"]), file), int(stored["example"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def _stored(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(read_whole(file) or b"null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _folder(lab: Lab) -> Path | None:
    """The folder of this subject; None where it has no name and file by which it could be known again."""
    target = lab.target
    if not lab.remembers:
        return None
    subject = target.function or (type(target.module) if target.module is not None else target.original)
    name = getattr(subject, "__qualname__", target.name)
    if target.path is None or "<lambda>" in name or not Path(target.path).is_file():
        return None
    root = cache_folder("failures")
    return root / _digest(f"{name}\0{Path(target.path).resolve()}") if root is not None else None


def _latest_first(folder: Path) -> Iterator[Path]:
    try:
        found = [(file.stat().st_mtime_ns, file.name) for file in folder.glob("*.json")]
    except OSError:  # another process tidied up
        return
    yield from (folder / name for _, name in sorted(found, reverse=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

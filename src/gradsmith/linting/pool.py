"""Rules in several processes, where that pays.

Measured on two busy cores: at 400 files that promise something, processes cost what they save. They are forked, so that models
need not travel; never from a process that has loaded torch (its threads do not survive a fork) or has threads itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, Skipped
from gradsmith.linting.settle import Found, Subject
from gradsmith.source import FileModel

if TYPE_CHECKING:
    from gradsmith.linting.run import Run

PAYS_FROM = 1000


@dataclass(frozen=True)
class _Sent:
    """A `Found` as it travels: models by their place in lists that both processes have."""

    finding: Finding
    file: int
    kind: str
    subject: int


@dataclass(frozen=True)
class _Result:
    found: list[_Sent]
    skipped: list[Skipped]


# What a forked child finds in its copy of our memory.
_inherited: list[tuple[Run, Sequence[FileModel]]] = []


def pays(files: Sequence[FileModel]) -> bool:
    """Is there enough to do, more than one processor, and nothing that a fork would break?"""
    if len(files) < PAYS_FROM:
        return False
    return (
        hasattr(os, "fork")
        and _processors() > 1
        and "torch" not in sys.modules
        and threading.active_count() == 1
        and not _is_daemon()
    )


def lint_in_processes(run: Run, files: Sequence[FileModel]) -> tuple[list[Found], list[Skipped]]:
    """Every rule over every file, in forked processes."""
    import multiprocessing

    workers = min(_processors(), 8)
    _inherited.append((run, files))
    try:
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            parts = pool.map(_lint_some, range(workers * 4), chunksize=1)
    finally:
        _inherited.pop()
    found = [Found(s.finding, _subject(files[s.file], s), files[s.file]) for part in parts for s in part.found]
    # The order in which one process would have found them: rules settle twins by it.
    place = {file: i for i, file in enumerate(files)}
    found.sort(key=lambda item: place[item.file])
    return found, [s for part in parts for s in part.skipped]


def _lint_some(part: int) -> _Result:
    run, files = _inherited[-1]
    mine = replace(run, found=[], skipped=[])
    step = min(_processors(), 8) * 4
    for index in range(part, len(files), step):
        mine.lint_file(files[index])
    place = {file: i for i, file in enumerate(files)}
    return _Result([_sent(item, place[item.file]) for item in mine.found], mine.skipped)


def _sent(item: Found, file: int) -> _Sent:
    for kind in ("functions", "layers"):
        for index, model in enumerate(getattr(item.file, kind)):
            if model is item.subject:
                return _Sent(item.finding, file, kind, index)
    return _Sent(item.finding, file, "file", 0)


def _subject(file: FileModel, sent: _Sent) -> Subject:
    if sent.kind == "functions":
        return file.functions[sent.subject]
    return file.layers[sent.subject] if sent.kind == "layers" else file


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _is_daemon() -> bool:
    """A daemonic process (a worker of somebody's pool) may not have children."""
    running = sys.modules.get("multiprocessing.process")
    return running is not None and bool(running.current_process().daemon)

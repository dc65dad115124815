"""Lint results on disk: a folder in which nothing changed is not read again.

One file per call (folder, rules, settings), in the user's cache folder. It holds what every source file looked like from
outside (time of change, size) and the report. When all of them look the same, the report is given again. When some
changed, the others that promised nothing are still not read; the rest is linted together, because a class in one
file may derive from a class in another.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradsmith.findings import Report
from gradsmith.linting.first_look import PARSE_WHOLE_BELOW
from gradsmith.linting.run import Run
from gradsmith.rule_packages import installed
from gradsmith.source import scan
from gradsmith.storage import cache_folder, read_whole, write_whole

if TYPE_CHECKING:
    from gradsmith.config import Config

FORMAT = 1
KEEP = 50
# File systems tell time in steps: a file written this shortly before it was read may be written again unnoticed.
_RACY_NS = 2_000_000_000


@dataclass(frozen=True)
class _Look:
    """A file from outside; `digest` only where its times are too young to be trusted."""

    modified: int
    changed: int
    size: int
    digest: str = ""


@dataclass
class _Remembered:
    looks: dict[str, _Look]
    unpromising: frozenset[str]
    report: Report

    @staticmethod
    def read(path: Path) -> _Remembered | None:
        """What the file holds; None when it is missing, torn or of another format."""
        data = read_whole(path)
        if data is None:
            return None
        try:
            content = json.loads(data)
            looks = {path: _Look(int(m), int(c), int(s), str(d)) for path, (m, c, s, d) in content["looks"].items()}
            return _Remembered(looks, frozenset(content["unpromising"]), Report.from_dict(content["report"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def lint(
    paths: Sequence[str], select: Sequence[str], ignore: Sequence[str], preview: bool, config: Config | None
) -> Report:
    """`gs.lint` with memory."""
    folder = cache_folder("lint")
    if folder is None:
        return _fresh(paths, select, ignore, preview, config, None).report
    path = folder / f"{_key(paths, select, ignore, preview, config)}.json"
    known = _Remembered.read(path)
    if known is not None and _unchanged(paths, known, config):
        return known.report
    result = _fresh(paths, select, ignore, preview, config, known)
    _remember(path, result)
    return result.report


@dataclass
class _Fresh:
    report: Report
    looks: dict[str, _Look] = field(default_factory=dict)
    unpromising: list[str] = field(default_factory=list)


def _fresh(
    paths: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    preview: bool,
    config: Config | None,
    known: _Remembered | None,
) -> _Fresh:
    from gradsmith.linting import rules_for

    run = Run(rules_for(select, ignore, preview, config), config)
    looks: dict[str, _Look] = {}
    return _Fresh(run.report(_sources(paths, known, looks, config)), looks, run.unpromising)


def _sources(
    paths: Sequence[str], known: _Remembered | None, looks: dict[str, _Look], config: Config | None
) -> Iterator[scan.Seen]:
    skippable: frozenset[str] = frozenset()
    if known is not None and sum(look.size for look in known.looks.values()) > 2 * PARSE_WHOLE_BELOW:
        skippable = known.unpromising
    for file in scan.find_all(paths, scan.WITH_NOTEBOOKS, config.excluded if config else None):
        path = file.path
        if isinstance(file, scan.Unreadable):
            yield file
            continue
        try:
            if path in skippable and known is not None and _same(path, known.looks.get(path)):
                looks[path] = known.looks[path]
                yield scan.Unpromising(path, looks[path].size)
                continue
            # Looked at before it is read: what is written in between looks different the next time.
            look = _look(os.stat(path))
        except (OSError, ValueError, scan.NotPlain):
            yield scan.read(file)
            continue
        looks[path] = look
        if max(look.modified, look.changed) <= time.time_ns() - _RACY_NS:
            yield file
            continue
        source = scan.read(file)
        if isinstance(source, scan.SourceFile):
            looks[path] = replace(look, digest=_digest(source.data))
        yield source


def _unchanged(paths: Sequence[str], known: _Remembered, config: Config | None) -> bool:
    count = 0
    for file in scan.find_all(paths, scan.WITH_NOTEBOOKS, config.excluded if config else None):
        count += 1
        if isinstance(file, scan.Unreadable):
            return False
        try:
            if not _same(file.path, known.looks.get(file.path)):
                return False
        except (OSError, ValueError, scan.NotPlain):
            return False
    return count == len(known.looks)


def _same(path: str, before: _Look | None) -> bool:
    if before is None:
        return False
    now = _look(os.stat(path))
    if (now.modified, now.changed, now.size) != (before.modified, before.changed, before.size):
        return False
    return not before.digest or _digest(scan.plain_bytes(path)) == before.digest


def _look(stat: os.stat_result) -> _Look:
    return _Look(stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _key(
    paths: Sequence[str], select: Sequence[str], ignore: Sequence[str], preview: bool, config: Config | None
) -> str:
    asked = (tuple(paths), tuple(select), tuple(ignore), preview, repr(config))
    parts = (FORMAT, os.getcwd(), asked, sys.version, _rules())
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _rules() -> str:
    """What looks for defects, from outside: another rule, or another version of one, finds other things.

    Our own sources, and the rules of other packages; none of these is imported.
    """
    from gradsmith.about import FOLDER, VERSION

    others = installed()
    state = [VERSION, FOLDER, *map(repr, others)]
    ours = [os.path.join(FOLDER, name) for name in ("rules", "source", "linting")]
    for folder in (*ours, *(folder for other in others for folder in other.folders())):
        for where, _, files in sorted(os.walk(folder)):
            for name in sorted(f for f in files if f.endswith((".py", ".txt"))):
                stat = os.stat(os.path.join(where, name))
                state.append(f"{where}/{name} {stat.st_mtime_ns} {stat.st_size}")
    return hashlib.sha256("\n".join(state).encode("utf-8", "surrogateescape")).hexdigest()


def _remember(path: Path, result: _Fresh) -> None:
    if any("cannot be read" in s.reason for s in result.report.skipped):
        return  # it may be readable the next time, and nothing on disk would look different
    looks = {p: [v.modified, v.changed, v.size, v.digest] for p, v in result.looks.items()}
    content = {"looks": looks, "unpromising": result.unpromising, "report": result.report.to_dict()}
    write_whole(path, json.dumps(content).encode("utf-8", "surrogatepass"))
    others = sorted(path.parent.glob("*.json"), key=_age)
    for old in others[:-KEEP]:
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0

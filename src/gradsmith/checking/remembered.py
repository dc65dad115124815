"""Verdicts on disk: what was verified, and of which nothing has changed that it saw, is not run again.

Only `verified` is remembered; whatever else came out is tried again. A verdict is kept with all that its process was seen to look
at (`lab/process/witness.py`): files with their content, folders with their names, the environment as far as it was read. What cannot
be compared later (a program that it starts, the network, a file that changed meanwhile) is a reason to remember nothing.
Never imports torch.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradsmith.checking.world import World, digest, sources_in, variables, young
from gradsmith.findings import Report, plural
from gradsmith.storage import cache_folder, read_whole, write_whole

if TYPE_CHECKING:
    from gradsmith.checking.jobs import Running
    from gradsmith.checking.subjects import Named, Wanted

FORMAT = 2
KEEP = 2000  # files with remembered verdicts, of all projects
_SEEN = "seen"


@dataclass
class RunMemory:
    """What is known of the files of one run, and what it adds. `off` where nothing may be remembered or recalled."""

    how: Running
    off: bool = False
    world: World = field(default_factory=World)
    reasons: dict[str, list[str]] = field(default_factory=dict)  # why something is not remembered -> subjects
    recalled: int = 0

    def recall(self, item: Wanted) -> tuple[list[Named], dict[str, Report]]:
        """All subjects of a file, in their order, and the reports on those that are as they were; nothing where all is new."""
        path = self._place(item)
        data = read_whole(path) if path is not None else None
        if data is None:
            return list(item.subjects), {}
        try:
            entry = json.loads(data)
            known = {n: Report.from_dict(e["report"]) for n, e in entry["reports"].items() if self._holds(e[_SEEN])}
            names = [(name, line) for name, line in entry["names"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            return list(item.subjects), {}
        if not known:
            return list(item.subjects), {}
        self.recalled += len(known)
        return names, known

    def keep(self, item: Wanted, names: list[Named], results: Mapping[str, tuple[Report, Mapping[str, Any]]]) -> None:
        """Remember what was verified of a file: results are the reports of this run, with what their processes saw.

        What is remembered of its other subjects, and still holds, stays.
        """
        path = self._place(item)
        if path is None:
            return
        self.world = self.world.later()  # as it is now, not as it was before the run
        data = read_whole(path)
        before: dict[str, Any] = json.loads(data)["reports"] if data is not None else {}
        reports = {name: e for name, e in before.items() if name not in results and self._holds(e[_SEEN])}
        for name, (report, seen) in results.items():
            if not report.subjects or any(s.verdict != "verified" for s in report.subjects):
                continue
            if reason := self._unfit(seen):
                self.reasons.setdefault(reason, []).append(name)
            else:
                reports[name] = {_SEEN: self._state(seen), "report": report.to_dict()}
        if reports:
            write_whole(path, json.dumps({"names": names, "reports": reports}).encode("utf-8", "surrogatepass"))

    def words(self, *, verbose: bool) -> list[str]:
        """How many verdicts were not measured again; if `verbose`, also why others are not remembered."""
        told = f"{plural(self.recalled, 'verdict')} from an earlier run: nothing has changed since (--no-cache runs them again)"
        unfit = [f"not remembered: {', '.join(names)}, which {reason}" for reason, names in self.reasons.items()]
        return [*([told] if self.recalled else []), *(unfit if verbose else [])]

    def _unfit(self, seen: Mapping[str, Any]) -> str:
        """Why a verdict cannot be remembered; empty where it can."""
        if not seen:
            return "did not say what it saw"
        if seen["beyond"]:
            return str(seen["beyond"][0])
        folders = {path: whole for path, whole in seen["folders"].items() if path not in seen["installed folders"]}
        if changed := young([*seen["files"], *sources_in(folders)], seen["since"]):
            return f"may have seen {os.path.basename(changed)} before or after it changed"
        return ""

    def _state(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        """What was seen, as it looks now."""
        groups = [digest(seen["installed"])]
        self._remember_group(groups[0], lambda: seen["installed"])
        if before := seen["installed before"]:
            groups.append(before["group"])
            self._remember_group(before["group"], lambda: json.loads(Path(before["file"]).read_bytes()))
        return {
            "files": {path: self.world.file(path) for path in seen["files"]},
            "folders": [[path, whole, self.world.folder(path, whole)] for path, whole in seen["folders"].items()],
            "asked": dict(seen["asked"]),
            "installed": [[group, self.world.installed(_group(group), group)] for group in groups],
            "variables": variables(seen["variables"], whole=seen["whole environment"]),
            "whole environment": seen["whole environment"],
        }

    def _holds(self, state: Mapping[str, Any]) -> bool:
        """Whether everything that was seen looks the same now."""
        world = self.world
        return (
            all(world.file(path) == was for path, was in state["files"].items())
            and all(world.folder(path, whole) == was for path, whole, was in state["folders"])
            and all(world.asked(path) == was for path, was in state["asked"].items())
            and variables(state["variables"], whole=state["whole environment"]) == state["variables"]
            and all(world.installed(_group(group), group) == was for group, was in state["installed"])
        )

    def _place(self, item: Wanted) -> Path | None:
        folder = None if self.off else cache_folder("verdicts")
        return folder / f"{self._key(item)}.json" if folder is not None else None

    def _key(self, item: Wanted) -> str:
        how = self.how
        asked = (how.options, how.seconds, how.bytes, list(how.stubs), how.inputs, how.device)
        subject = (item.path, item.module, item.whole, None if item.whole else item.subjects)
        return digest([FORMAT, os.getcwd(), subject, asked, _machine(), _ourselves()])

    def _remember_group(self, group: str, paths: Callable[[], list[str]]) -> None:
        folder = cache_folder("verdicts")
        if folder is not None and not (folder / f"{group}.paths").exists():
            with contextlib.suppress(OSError, ValueError):  # a list that cannot be read looks like nothing else
                write_whole(folder / f"{group}.paths", json.dumps(paths()).encode("utf-8", "surrogatepass"))

    def tidy(self) -> None:
        """Forget the oldest where there are too many."""
        folder = None if self.off else cache_folder("verdicts")
        entries = list(folder.glob("*.json")) if folder is not None else []
        if len(entries) > KEEP:
            for old in sorted(entries, key=lambda p: p.stat().st_mtime)[:-KEEP]:
                old.unlink(missing_ok=True)


def _group(group: str) -> Iterator[str]:
    """The paths of a list, read when they are asked for; one that is lost looks like nothing else, not even like itself."""
    folder = cache_folder("verdicts")
    data = read_whole(folder / f"{group}.paths") if folder is not None else None
    yield from json.loads(data) if data is not None else (f"lost {secrets.token_hex(16)}",)


def _machine() -> list[str]:
    about = os.uname() if hasattr(os, "uname") else ()
    return [sys.version, sys.executable, sys.prefix, *about, str(os.cpu_count()), *sys.path[1:]]


@functools.lru_cache(maxsize=1)
def _ourselves() -> str:
    """Our own sources and the rules of other packages, from outside: another gradsmith judges differently."""
    from gradsmith.about import FOLDER, VERSION
    from gradsmith.rule_packages import installed

    others = installed()
    state = [VERSION, *map(repr, others)]
    for folder in (FOLDER, *(folder for other in others for folder in other.folders())):
        for where, _, files in sorted(os.walk(folder)):
            for name in sorted(f for f in files if f.endswith((".py", ".txt", ".c", ".so", ".json"))):
                stat = os.stat(os.path.join(where, name))
                state.append(f"{where}/{name} {stat.st_mtime_ns} {stat.st_size}")
    return digest(state)

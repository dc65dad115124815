"""Less than all: what changed in git, what failed last time. Never imports torch."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gradsmith.checking.subjects import Wanted
from gradsmith.checking.world import digest
from gradsmith.findings import GradsmithError, Report
from gradsmith.source import imports, scan
from gradsmith.source.encoding import decoded
from gradsmith.source.module_names import package_name
from gradsmith.storage import cache_folder, read_whole, write_whole


def changed(work: Sequence[Wanted], base: str) -> list[Wanted]:
    """The files that differ from `base` in git, or are new to it, or import such a file, directly or through others."""
    files = [item.path for item in work if item.path is not None]
    if not files:
        return list(work)
    top = Path(_git(files[0], "rev-parse", "--show-toplevel")[0])
    names = _git(files[0], "diff", "--name-only", "-z", "--diff-filter=d", base, "--", at=top)
    names += _git(files[0], "ls-files", "--others", "--exclude-standard", "-z", at=top)
    touched = {os.path.realpath(top / name) for name in names if name}
    seen = with_importers(touched, top)
    return [item for item in work if item.path is None or os.path.realpath(item.path) in seen]


def with_importers(touched: Iterable[str], top: Path) -> set[str]:
    """These files, and every Python file under `top` that imports one of them, directly or through others."""
    importers: dict[str, set[str]] = {}
    for source in scan.read_all([str(top)]):
        if isinstance(source, scan.SourceFile):
            path = os.path.realpath(source.path)
            for name in _imported(Path(path), source.data):
                importers.setdefault(name, set()).add(path)
    found = set(touched)
    waiting = list(found)
    while waiting:
        file = Path(waiting.pop())
        name = package_name(file)[1] if file.suffix == ".py" else ""
        for importer in importers.get(name, set()) - found:
            found.add(importer)
            waiting.append(importer)
    return found


def _imported(path: Path, data: bytes) -> set[str]:
    """The modules that a file may import: of `from a.b import c`, a, a.b and a.b.c."""
    try:
        read = imports.read(decoded(data))
    except (UnicodeDecodeError, LookupError, SyntaxError, ValueError):
        return set()
    names = set()
    package = package_name(path)[1].split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    for name in (*read.names.values(), *read.stars, *read.modules):
        dots = len(name) - len(name.lstrip("."))
        above = package[: len(package) - dots + 1] if dots else []
        parts = [*above, *filter(None, name.lstrip(".").split("."))]
        names |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return names


def _git(near: str, *words: str, at: Path | None = None) -> list[str]:
    folder = at or Path(near).resolve().parent
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise GradsmithError("--changed asks git, which is not installed") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["no reason given"]
        raise GradsmithError(f"--changed asks git, which says: {said[0]}") from None
    return done.stdout.strip("\n").split("\0") if "-z" in words else done.stdout.splitlines()


def last_failed(work: Sequence[Wanted]) -> list[Wanted]:
    """The subjects that were not verified when they were last checked from here; all of them where none is known."""
    failed = _failed()
    found = []
    for item in work:
        names = failed.get(_where(item), [])
        kept = tuple((name, line) for name, line in item.subjects if name in names)
        if kept:
            found.append(replace(item, subjects=kept, whole=False))
    return found or list(work)


def remember_failed(work: Sequence[Wanted], report: Report) -> None:
    """Note which subjects are not verified, for `--last-failed`; what was not checked now stays as it was."""
    folder = cache_folder("last")
    if folder is None:
        return
    failed = _failed()
    open_ends = {s.name for s in report.subjects if s.verdict != "verified"}
    for item in work:
        asked = [name for name, _ in item.subjects]
        before = [name for name in failed.pop(_where(item), []) if name not in asked]
        if now := [*before, *(name for name in asked if name in open_ends)]:
            failed[_where(item)] = now
    write_whole(folder / _place(), json.dumps(failed).encode("utf-8", "surrogatepass"))


def _failed() -> dict[str, list[str]]:
    folder = cache_folder("last")
    data = read_whole(folder / _place()) if folder is not None else None
    found: dict[str, list[str]] = json.loads(data) if data is not None else {}
    return found


def _place() -> str:
    return f"{digest(os.getcwd())}.json"


def _where(item: Wanted) -> str:
    return os.path.realpath(item.path) if item.path is not None else item.module or ""

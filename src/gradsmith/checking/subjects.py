"""From what a user types (`src/`, `ops.py::Swish`, `package.module:Swish`) to the subjects that can be run.

Reads source only; the modules are imported later, in a process of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradsmith.config import Config
from gradsmith.findings import GradsmithError
from gradsmith.nearest import nearest
from gradsmith.source import FileModel, FunctionModel, notebook, project, scan
from gradsmith.source.applied import aliases, applied_in
from gradsmith.source.encoding import decoded
from gradsmith.source.loaded import file_named

Named = tuple[str, int | None]


@dataclass(frozen=True)
class Wanted:
    """Subjects of one file or module: `(qualified name, line)`. `whole` means that none was singled out."""

    path: str | None
    module: str | None
    subjects: tuple[Named, ...]
    whole: bool
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # which subjects a subject calls


def wanted(targets: Sequence[str], config: Config | None = None) -> list[Wanted]:
    """What to run for these targets, file by file; what a project excludes is not looked for in folders."""
    excluded = config.excluded if config is not None else None
    found: list[Wanted] = []
    for target in targets:
        if "::" in target:
            path, _, name = target.partition("::")
            found.append(_singled_out(_existing(path), name))
        elif _is_dotted(target):
            module, _, name = target.partition(":")
            found.append(Wanted(None, module, ((name, None),), False))
        else:
            found.extend(_everything(_existing(target), excluded))
    return found


def files_of(targets: Sequence[str]) -> list[str]:
    """The files and folders that lint can read for these targets."""
    return [target.partition("::")[0] for target in targets if not _is_dotted(target)]


def functions_in(
    paths: Iterable[str | Path], excluded: scan.Excluded | None = None, endings: tuple[str, ...] = scan.ENDINGS
) -> list[FunctionModel]:
    """Every custom gradient under these paths that has a forward of its own or by inheritance."""
    files = []
    for source in scan.read_all(paths, endings, excluded):
        if isinstance(source, scan.SourceFile) and scan.known(source.data).function:
            try:
                files.append(FileModel(source.path, _code(source)))
            except (UnicodeDecodeError, LookupError, SyntaxError, ValueError):
                continue  # lint lists it as skipped
    loaded = project.load(files, files)
    return [f for file in loaded.files for f in file.functions if f.forward is not None and f.backward is not None]


def _code(source: scan.SourceFile) -> str:
    return notebook.read(source.data).text if source.path.endswith(notebook.ENDING) else decoded(source.data)


def _everything(path: str, excluded: scan.Excluded | None) -> list[Wanted]:
    by_file: dict[str, list[FunctionModel]] = {}
    for function in functions_in([path], excluded, scan.WITH_NOTEBOOKS):
        by_file.setdefault(function.file.path, []).append(function)
    found = [_in_call_order(file, functions) for file, functions in by_file.items()]
    if not found and (file := file_named(path)) is not None and file.mentions("gradsmith_inputs"):
        found.append(Wanted(path, None, (), True))
    return found


def _in_call_order(path: str, functions: list[FunctionModel]) -> Wanted:
    """Subjects of one file, those that are called before those that call them."""
    calls = {f.qualname: tuple(_applied_by(f, functions)) for f in functions}
    lines = {f.qualname: f.node.lineno for f in functions}
    ordered: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        for callee in calls[name]:
            if callee not in above:
                visit(callee, (*above, name))
        ordered[name] = None

    for name in calls:
        visit(name, ())
    return Wanted(path, None, tuple((name, lines[name]) for name in ordered), True, calls)


def _applied_by(caller: FunctionModel, functions: Iterable[FunctionModel]) -> Iterator[str]:
    """The other subjects of a file that one of them applies."""
    for callee in functions:
        if callee.qualname != caller.qualname and applied_in(
            caller.node, callee.name, aliases(caller.file, callee.name)
        ):
            yield callee.qualname


def calls_of(jobs: Iterable[Wanted]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Which subjects, by (real path of the file, name), call which others of their file."""
    return {
        (os.path.realpath(job.path), caller): callees
        for job in jobs
        for caller, callees in job.calls.items()
        if callees and job.path is not None
    }


def _singled_out(path: str, name: str) -> Wanted:
    known = {f.qualname: f.node.lineno for f in functions_in([path])}
    short = {qualname.rpartition(".")[2]: qualname for qualname in known}
    qualname = name if name in known else short.get(name)
    if qualname is None:
        file = file_named(path)
        if file is not None and file.uses(name):
            return Wanted(path, None, ((name, None),), False)  # a module, a custom op or a callable
        raise GradsmithError(f"{path} has no {name!r}; {_offer(name, known)}")
    return Wanted(path, None, ((qualname, known[qualname]),), False)


def _offer(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return nearest(name, names) if names else "it has no custom gradient at all"


def _existing(path: str) -> str:
    if not os.path.lexists(path):
        raise GradsmithError(f"no such file or folder: {path}")
    if not os.path.isdir(path) and isinstance(found := scan.read(scan.Unread(path)), scan.Unreadable):
        raise GradsmithError(f"{path} {found.reason}")
    return path


def _is_dotted(target: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", target) is not None and not Path(target).exists()

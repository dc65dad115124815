"""The rules over many files, in several processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.findings import Finding, Skipped
from gradsmith.linting import pool
from gradsmith.linting.settle import Found
from gradsmith.source import FileModel

if TYPE_CHECKING:
    from gradsmith.linting.run import Run

PAYS_FROM = 150  # files to lint
PAYS_FROM_BYTES = 500_000  # or that much in fewer: 0.1 s of one process


def pays(run: Run, files: Sequence[FileModel]) -> bool:
    """Whether there is enough to do for a second process."""
    return len(files) >= PAYS_FROM or sum(run.sizes[file] for file in files) >= PAYS_FROM_BYTES


class _Sent(NamedTuple):
    """A `Found` as it travels: files by their place in a list that both processes have."""

    finding: Finding
    file: int
    stands_in: int
    is_own: bool
    header: range


@dataclass
class _Result:
    done: list[int]
    found: list[_Sent]
    skipped: list[Skipped]
    functions: int
    unparsed: list[int]


def lint_in_processes(run: Run, files: Sequence[FileModel], count: int) -> None:
    """Every rule over every file, in `count` processes."""
    longest_first = sorted(range(len(files)), key=lambda index: -run.sizes[files[index]])
    parts = pool.shared_out(partial(_lint_some, run, files), longest_first, count)
    sent = sorted((s for part in parts for s in part.found), key=lambda s: s.file)
    # In the order in which one process would have found them: rules settle twins by it.
    run.found += [Found(s.finding, files[s.file], files[s.stands_in], s.is_own, s.header) for s in sent]
    for part in parts:
        run.skipped += part.skipped
        run.functions += part.functions
        run.unparsed.update(files[index] for index in part.unparsed)
    run.skipped.sort(key=lambda skipped: skipped.path)


def _lint_some(run: Run, files: Sequence[FileModel], indices: Iterable[int]) -> _Result:
    mine = replace(run, found=[], skipped=[], functions=0, unparsed=set())
    done = []
    for index in indices:
        mine.lint_file(files[index])
        done.append(index)
    place = {file: index for index, file in enumerate(files)}
    sent = [_Sent(f.finding, place[f.file], place[f.stands_in], f.is_own, f.header) for f in mine.found]
    return _Result(done, sent, mine.skipped, mine.functions, [place[file] for file in mine.unparsed])

"""`gs.lint`: read source, run the rules that can see their defect in it, hide what the author asked to hide."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Report
from gradsmith.linting import pool
from gradsmith.linting.scout import Scout
from gradsmith.source import scan

if TYPE_CHECKING:
    from gradsmith.catalog import Rule
    from gradsmith.config import Config

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def lint(
    paths: Paths,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    preview: bool = False,
    config: Config | None = None,
    debug: bool = False,
    cache: bool = False,
) -> Report:
    """Lint files, folders and notebooks. Nothing is imported or run.

    With `cache`, a folder in which nothing changed since the last time is not read again.

    >>> lint([]).closing_line()
    'nothing to check: no custom gradient found'
    """
    given = as_list(paths)
    if cache and not debug and any(os.path.isdir(path) for path in given):
        from gradsmith.linting import cached

        return cached.lint(given, select, ignore, preview, config)
    excluded = config.excluded if config is not None else None
    find = functools.partial(_found, given, excluded)
    # Rules take as long to load as files to find and read: both at once where there are folders to look into.
    apart = not debug and any(os.path.isdir(path) for path in given) and pool.processors() > 1
    scout = Scout(find) if apart else None
    try:
        from gradsmith.linting.run import Run  # with all the models: the scout left before

        rules = rules_for(select, ignore, preview, config)
        return Run(rules, config, debug).report(scout or find())
    finally:
        if scout is not None:
            scout.end()


def _found(paths: Sequence[str], excluded: scan.Excluded | None) -> list[scan.Seen]:
    return list(scan.find_all(paths, scan.WITH_NOTEBOOKS, excluded))


def lint_source(
    text: str | bytes,
    path: str = "<string>",
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    preview: bool = False,
    config: Config | None = None,
    debug: bool = False,
) -> Report:
    """Lint one text as if it were the file `path`; a path that ends in .ipynb says that it is a notebook.

    >>> lint_source("x = 1").findings
    []
    """
    from gradsmith.linting.run import Run
    from gradsmith.source.encoding import encoded

    data = text if isinstance(text, bytes) else encoded(text)
    rules = rules_for(select, ignore, preview, config)
    return Run(rules, config, debug).report([scan.SourceFile(path, data, named=True)])


def rules_for(select: Sequence[str], ignore: Sequence[str], preview: bool, config: Config | None) -> list[Rule]:
    """The rules with a source lens that the call and the project leave."""
    from gradsmith.catalog import chosen  # 5 ms that the scout need not wait for

    selected = select or (config.select if config else ())
    ignored = [*ignore, *(config.ignore if config else ())]
    preview = preview or (config is not None and config.preview)
    return [rule for rule in chosen(selected, ignored, preview=preview) if "lint" in rule.lenses]


def as_list(paths: Paths) -> list[str]:
    """One path or many, as text."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [os.fspath(path) for path in given]

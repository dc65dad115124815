"""`gs.check_paths`: all that `gradsmith check` does, except for the rendering."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradsmith.catalog import find, for_event
from gradsmith.checking.ignoring import without_used
from gradsmith.checking.jobs import Running, recalled, run, started
from gradsmith.checking.options import Options
from gradsmith.checking.remembered import RunMemory
from gradsmith.checking.subjects import Wanted, calls_of, files_of, wanted
from gradsmith.checking.verdict import once_each, waiting
from gradsmith.config import Config
from gradsmith.findings import Report, plural
from gradsmith.folding import together
from gradsmith.lab.process.stopping import Stopped
from gradsmith.linting import lint
from gradsmith.source import notebook
from gradsmith.torch_here import newer_than_tested

Advance = Callable[[Report], None]


def check_paths(
    *targets: str | Path,
    inputs: str | None = None,
    recorded: str | Path | None = None,
    device: str | None = None,
    jobs: int = 1,
    stubs: Sequence[str] = (),
    timeout: float = 120.0,
    memory: float = 8.0,
    config: Config | None = None,
    cache: bool = False,
    **options: Any,
) -> Report:
    """`gradsmith check` from Python: files, folders, `file.py::Class` or `package.module:Class`, each one isolated.

    `inputs` is Python code, evaluated in the user's module; `recorded` a file that `gradsmith record --save` wrote;
    `stubs` names modules that a stand-in replaces. `timeout` (seconds of CPU time) and `memory` (GiB) limit one subject. `jobs` files
    are checked at the same time, and the report is the same for any number. With `cache`, what was verified before is not run again
    as long as nothing has changed that it saw. What a pyproject.toml says counts only as
    `config=gradsmith.config.load()`. The other options are those of `gs.check`.

    >>> check_paths().closing_line()
    'nothing to check: no custom gradient found'
    """
    named = [str(target) for target in targets]
    chosen = Options.of({**options, "recorded": recorded_file(recorded)})
    how = Running(with_config(chosen, config).as_json(), timeout, int(memory * 2**30), stubs, inputs, device, jobs)
    return linted_and_run(named, wanted(named, config), how, config, cache=cache)


def with_config(options: Options, config: Config | None) -> Options:
    """With the rules that a project chooses: what was asked for by hand comes first."""
    if config is None:
        return options
    return replace(
        options,
        select=tuple(options.select) or config.select,
        ignore=(*options.ignore, *config.ignore),
        preview=options.preview or config.preview,
        assumes={**config.assumes, **options.assumes},
        surrogates=(*config.surrogates, *options.surrogates),
    )


def linted_and_run(
    targets: Sequence[str],
    work: Sequence[Wanted],
    how: Running,
    config: Config | None = None,
    advance: Advance | None = None,
    *,
    cache: bool = False,
    verbose: bool = False,
) -> Report:
    """Both lenses on the targets, as one report; `advance` is told of every subject that is done.

    With `cache`, what is remembered is not run again; `verbose` says what cannot be remembered, and why.
    """
    options: dict[str, Any] = {**how.options, "lint": False}  # the files are read once, here
    chosen = {name: options[name] for name in ("select", "ignore", "preview", "debug")}
    how = replace(how, options=options)
    memory = RunMemory(how, off=not cache or bool(options["debug"]))
    todo = recalled(work, memory)
    # Reading the source takes less time than importing torch, and both can be done at once.
    source = Report()
    try:
        with contextlib.nullcontext() if all(one.complete for one in todo) else started(how) as zygote:
            source = lint(files_of(targets), config=config, cache=not memory.off, **chosen)
            report = _in_cells(run(todo, how, memory, advance, zygote)) if work else Report()
    except Stopped as stopped:
        found = together(_narrowed(source, work), _in_cells(stopped.report or Report()))
        stopped.report = replace(
            once_each(found), notes=[*found.notes, f"{stopped.words}: this is what was found so far"]
        )
        raise
    memory.tidy()
    if work and (note := newer_than_tested()):
        report.notes.append(note)
    both = without_used(once_each(_without_opinions(together(_narrowed(source, work), report))))
    report = _with_note(waiting(both, calls_of(work)))
    report.notes += memory.words(verbose=verbose)
    return report


def recorded_file(given: str | Path | None) -> str | None:
    """The absolute path of a recording, once it was found to be one."""
    from gradsmith.inputs.recorded_file import read

    if given is None:
        return None
    read(Path(given))
    return str(Path(given).absolute())


def _in_cells(report: Report) -> Report:
    """Findings in a notebook at their cell: the subjects were run as one text."""
    paths = {f.path for f in report.findings if f.path and f.path.endswith(notebook.ENDING) and f.cell is None}
    read = {path: notebook.read(Path(path).read_bytes()) for path in paths}
    placed = [read[f.path].placed(f) if f.path in read else f for f in report.findings]
    return replace(report, findings=placed)


def _narrowed(source: Report, jobs: Sequence[Wanted]) -> Report:
    """`file.py::Class` asks about one class: the rest of the file's lint findings stay out."""
    singled = {(job.path, name) for job in jobs if not job.whole for name, _ in job.subjects}
    if not singled:
        return source
    paths = {path for path, _ in singled}
    kept = [f for f in source.findings if f.path not in paths or (f.path, f.function) in singled]
    return replace(source, findings=kept)


def _without_opinions(report: Report) -> Report:
    """Nobody is told that a Function is not needed, if it never came to its end: what it does is not known."""
    ended = {(f.path, f.function) for f in report.findings if find(f.rule).event not in ("", "import")}
    kept = [f for f in report.findings if (f.path, f.function) not in ended or find(f.rule).family != "needless"]
    return replace(report, findings=kept)


def _with_note(report: Report) -> Report:
    """Where imports failed, say what was still done: "3 linted, 0 run: line 3 imports X"."""
    failing = f"{for_event('import').name}: "
    failed = [s for s in report.subjects if s.reason.startswith(failing)]
    if failed:
        run = len(report.subjects) - len(failed)
        reason = failed[0].reason.removeprefix(failing)
        report.notes.append(f"{plural(report.functions, 'custom gradient')} linted, {run} run: {reason}")
    return report

"""`gradsmith lint`."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import click

from gradsmith.cli.options import Output, configured, finish, report_options, split, status
from gradsmith.findings import Report, plural
from gradsmith.linting import lint, lint_source
from gradsmith.report.escaping import PROSE, escaped


class _Wish(NamedTuple):
    """What to do with findings besides printing them."""

    fix: bool
    unsafe: bool
    diff: bool
    statistics: bool


@click.command(
    "lint",
    epilog="\b\nExamples:\n  gradsmith lint src/ tests/\n  gradsmith lint my_ops.py --format concise\n"
    "  gradsmith lint . --select silent,GS1 --fail-on warning\n  gradsmith lint my_ops.py --diff\n"
    "  cat my_ops.py | gradsmith lint - --stdin-filename my_ops.py",
)
@click.argument("paths", nargs=-1)
@click.option("--fix", is_flag=True, help="Write the safe fixes into the files.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also edits that may change the meaning.")
@click.option("--diff", is_flag=True, help="Show what --fix would change; write nothing.")
@click.option("--add-ignore", is_flag=True, help="On the line of every finding, write a comment that hides it.")
@click.option("--statistics", is_flag=True, help="Only count the findings, by rule.")
@click.option("--stdin-filename", metavar="FILE", help="The name of what `-` reads from standard input.")
@click.option("--no-cache", is_flag=True, help="Read every file again, and remember nothing.")
@report_options
def command(
    paths: tuple[str, ...],
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    add_ignore: bool,
    statistics: bool,
    stdin_filename: str | None,
    no_cache: bool,
    format: str | None,
    output: str | None,
    also: tuple[str, ...],
    baseline: str | None,
    verbose: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    preview: bool,
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    debug: bool,
) -> None:
    """Read files, folders and notebooks (default: the current folder) and name every red flag of a custom gradient.

    Nothing is imported and nothing is run. `-` reads from standard input.
    """
    given = paths or (".",)
    if "-" in given and len(given) > 1:
        raise click.UsageError("`-` (standard input) cannot be combined with other paths")
    if add_ignore and (fix or diff or "-" in given):
        raise click.UsageError("--add-ignore writes comments into files; it goes without --fix, --diff and `-`")
    config = configured(isolated, stdin_filename if "-" in given else given[0])
    rules = {"select": split(select), "ignore": split(ignore), "preview": preview}
    chosen: dict[str, Any] = {**rules, "config": config, "debug": debug}
    wanted = Output.of(format, output, fail_on, config, exit_zero=exit_zero, verbose=verbose)
    wanted = wanted.known_from(baseline, config, also)
    wish = _Wish(fix, unsafe_fixes, diff, statistics)
    if given == ("-",):
        _from_stdin(stdin_filename or "<stdin>", wish, chosen, wanted)
    elif add_ignore:
        from gradsmith.linting.ignoring import add_ignores

        changes = add_ignores(given, **chosen)
        click.echo(f"wrote comments for {_how_many(changes.count, len(changes.files))}", err=True)
        _tell(changes.report, wish, wanted)
    elif fix or diff:
        from gradsmith.linting.fixing import fix as mend

        changes = mend(given, unsafe=unsafe_fixes, write=not diff, **chosen)
        if diff:
            _show(changes.diff(), changes.count, len(changes.files), wanted)
        if changes.count:
            click.echo(f"fixed {_how_many(changes.count, len(changes.files))}", err=True)
        _tell(changes.report, wish, wanted)
    else:
        _tell(lint(given, cache=not no_cache, **chosen), wish, wanted)


def _from_stdin(name: str, wish: _Wish, chosen: dict[str, Any], wanted: Output) -> None:
    data = sys.stdin.buffer.read()
    if not (wish.fix or wish.diff):
        _tell(lint_source(data, name, **chosen), wish, wanted)
    from gradsmith.linting.fixing import fix_source

    changes = fix_source(data, name, unsafe=wish.unsafe, **chosen)
    if wish.diff:
        _show(changes.diff(), changes.count, len(changes.files), wanted)
    # Editors pipe a buffer through us: the text goes where they read it, the report beside it.
    sys.stdout.buffer.write(changes.files[0].after if changes.files else data)
    click.echo(escaped(changes.report.closing_line()), err=True)
    raise click.exceptions.Exit(0 if wanted.exit_zero else status(changes.report, wanted))


def _show(diff: str, findings: int, files: int, wanted: Output) -> None:
    """The diff on standard output, fit for `git apply`; what it amounts to beside it."""
    click.echo(escaped(diff, PROSE) if sys.stdout.isatty() else diff, nl=False)
    click.echo(f"would fix {_how_many(findings, files)}", err=True)
    raise click.exceptions.Exit(1 if findings and not wanted.exit_zero else 0)


def _tell(report: Report, wish: _Wish, wanted: Output) -> None:
    if wish.statistics:
        report = wanted.baseline.without_known(report) if wanted.baseline is not None else report
        from gradsmith.report import statistics

        click.echo(statistics.render(report, wanted.format), nl=False)
        raise click.exceptions.Exit(0 if wanted.exit_zero else status(report, wanted))
    finish(report, wanted)


def _how_many(findings: int, files: int) -> str:
    return f"{plural(findings, 'finding')} in {plural(files, 'file')}"

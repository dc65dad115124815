"""`gradsmith lint`."""

from __future__ import annotations

import click

from gradsmith.cli.options import Output, configured, finish, report_options, split
from gradsmith.linting import lint


@click.command(
    "lint",
    epilog="\b\nExamples:\n  gradsmith lint src/ tests/\n  gradsmith lint my_ops.py --format concise\n"
    "  gradsmith lint . --select silent,GS1 --fail-on warning",
)
@click.argument("paths", nargs=-1)
@report_options
def command(
    paths: tuple[str, ...],
    format: str | None,
    output: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    debug: bool,
) -> None:
    """Read files and folders (default: the current folder) and name every red flag of a custom gradient.

    Nothing is imported and nothing is run.
    """
    given = paths or (".",)
    config = configured(isolated, given[0])
    report = lint(given, select=split(select), ignore=split(ignore), config=config, debug=debug)
    finish(report, Output.of(format, output, fail_on, config, exit_zero=exit_zero))

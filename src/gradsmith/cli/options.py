"""Options that several commands share, and what they mean for output and exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from gradsmith.about import WRONG_INPUTS
from gradsmith.cli.opening import open_option, opened
from gradsmith.config import Config, load
from gradsmith.findings import GradsmithError, Report, Severity
from gradsmith.lab.process.stopping import Stopped, leave_at_once
from gradsmith.report import FORMATS, format_for, render
from gradsmith.report.layout import terminal_width

if TYPE_CHECKING:
    from gradsmith.baseline import Baseline  # 3 ms with what it imports; few runs have one

F = TypeVar("F", bound=Callable[..., Any])


class Output(NamedTuple):
    """How the user wants to see a report, and what counts as failure."""

    format: str = "full"
    file: str | None = None
    fail_on: Severity = "error"
    allow_unverified: bool = False
    exit_zero: bool = False
    verbose: bool = False
    baseline: Baseline | None = None
    also: tuple[str, ...] = ()

    @staticmethod
    def of(
        format: str | None,
        file: str | None,
        fail_on: str | None,
        config: Config,
        *,
        exit_zero: bool,
        verbose: bool = False,
    ) -> Output:
        """The command line's wishes over the project's: a file's ending chooses the format where none is given."""
        chosen = format or (format_for(file) if file else "full")
        limit: Severity = "warning" if (fail_on or config.fail_on) == "warning" else "error"
        return Output(chosen, file, limit, False, exit_zero, verbose)

    def known_from(self, file: str | None, config: Config, also: Sequence[str] = ()) -> Output:
        """With more files to write, and the baseline that the command line or the project names: what it knows does not count."""
        chosen = file or config.baseline
        if chosen is None:
            return self._replace(also=tuple(also))
        from gradsmith.baseline import Baseline

        return self._replace(baseline=Baseline.read(chosen), also=tuple(also))


def report_options(command: F) -> F:
    """--format, --output, --also, --open, --baseline, --verbose, --select, --ignore, --preview, --fail-on, --exit-zero, --isolated, --debug."""
    options = [
        click.option("--format", "format", type=click.Choice(FORMATS), default=None, help="How to print. [full]"),
        click.option("--output", type=click.Path(dir_okay=False), help="Write the report to a file instead."),
        click.option(
            "--also",
            multiple=True,
            metavar="FILE",
            help="Also write the report to this file; its ending chooses the format.",
        ),
        open_option,
        click.option(
            "--baseline",
            metavar="FILE",
            help="Do not count the findings in this file, which `gradsmith baseline` wrote.",
        ),
        click.option("--verbose", "-v", is_flag=True, help="Show every remark and every condition in full."),
        click.option("--select", multiple=True, metavar="RULES", help="Only these rules, codes or families."),
        click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out."),
        click.option("--preview", is_flag=True, help="Run rules in preview, too."),
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning"]),
            default=None,
            help="From which severity on the exit status is 1. [error]",
        ),
        click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found."),
        click.option("--isolated", is_flag=True, help="Do not read pyproject.toml."),
        click.option("--debug", is_flag=True, help="Show tracebacks of gradsmith's own errors."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def check_options(command: F) -> F:
    """The options of a check, as `checking/options.py` has them."""
    from gradsmith.checking.options import on_command_line

    for option in reversed(on_command_line()):
        known = option.metadata
        settings: dict[str, Any] = {"help": known["help"], "default": option.default}
        if option.type == "bool":
            settings["is_flag"] = True
        elif known["choices"]:
            settings["type"] = click.Choice(known["choices"])
        else:
            settings |= {"type": int if option.type == "int" else str, "metavar": known["metavar"] or None}
        command = click.option(f"--{option.name.replace('_', '-')}", **settings)(command)
    return command


def split(values: Sequence[str]) -> tuple[str, ...]:
    """`--select a,b --select c` is three rules."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def configured(isolated: bool, target: str | None) -> Config:
    if isolated:
        return Config()
    from pathlib import Path

    return load(Path(target) if target and os.path.exists(target) else None)


def finish(report: Report, output: Output) -> NoReturn:
    """Print or write the report and exit with the status it deserves."""
    if output.baseline is not None:
        report = output.baseline.without_known(report)
    _show(report, output)
    raise click.exceptions.Exit(0 if output.exit_zero else status(report, output))


def finish_early(stopped: Stopped, output: Output) -> NoReturn:
    """What was found until a signal came, and the status by which shells tell that one did."""
    if stopped.report is None:
        raise stopped
    leave_at_once()
    found = stopped.report
    _show(output.baseline.without_known(found) if output.baseline is not None else found, output)
    raise click.exceptions.Exit(stopped.status)


def _show(report: Report, output: Output) -> None:
    for file in output.also:
        _write(file, render(report, format_for(file), verbose=output.verbose))
    if output.file:
        _write(output.file, render(report, output.format, verbose=output.verbose))
    else:
        links = sys.stdout.isatty() and _color() and os.environ.get("TERM") != "dumb"
        layout = {"width": terminal_width(), "verbose": output.verbose, "links": links}
        click.echo(render(report, output.format, color=_color(), **layout), nl=False, color=_color())
    opened(report, [file for file in (output.file, *output.also) if file])


def _write(file: str, text: str) -> None:
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise GradsmithError(f"cannot write {file}: {error.strerror}") from None


def status(report: Report, output: Output) -> int:
    if any(s.reason.startswith(WRONG_INPUTS) for s in report.subjects):
        return 2
    open_ends = [s for s in report.subjects if s.verdict != "verified" and not s.known]
    if output.allow_unverified:
        open_ends = [s for s in open_ends if s.verdict == "refuted"]
        failing = [f for f in report.at_least(output.fail_on) if f.code[:3] != "GS0"]
    else:
        failing = report.at_least(output.fail_on)
    unseen = report.skipped and not output.allow_unverified
    return 1 if failing or open_ends or unseen else 0


def _color() -> bool:
    """NO_COLOR wins, then FORCE_COLOR, then: only a terminal gets colour."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()

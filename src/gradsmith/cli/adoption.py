"""Options with which a project takes gradsmith up: less than everything at once, and what it writes for you."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradsmith.findings import Report, plural
from gradsmith.report.place import shown_path

if TYPE_CHECKING:
    from gradsmith.checking.subjects import Wanted
    from gradsmith.config import Config
    from gradsmith.linting.changes import ChangedFile

F = TypeVar("F", bound=Callable[..., Any])


def adoption_options(command: F) -> F:
    """--changed, --changed-from, --last-failed, --declare-surrogates, --write-inputs, --no-cache."""
    options = [
        click.option("--changed", is_flag=True, help="Only files that git says changed, and what imports them."),
        click.option("--changed-from", metavar="REF", help="As --changed, compared with a branch or commit. [HEAD]"),
        click.option(
            "--last-failed",
            is_flag=True,
            help="Only what was not verified the last time; everything, if all was verified.",
        ),
        click.option("--declare-surrogates", is_flag=True, help="Write the comments that declare surrogates."),
        click.option("--write-inputs", is_flag=True, help="Write the inputs that were guessed into the files."),
        click.option("--no-cache", is_flag=True, help="Run what was verified before, too, and remember nothing."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def narrowed(work: Sequence[Wanted], chosen: dict[str, Any]) -> list[Wanted]:
    """What is left of the work; takes these options out of those of the check."""
    from gradsmith.checking.narrowing import changed, last_failed

    only_changed, base, failed = (chosen.pop(name) for name in ("changed", "changed_from", "last_failed"))
    found = changed(work, base or "HEAD") if only_changed or base else list(work)
    if work and not found:
        click.echo(f"No file that was asked for has changed since {base or 'HEAD'}, nor what it imports.", err=True)
    return last_failed(found) if failed else found


def from_config(chosen: dict[str, Any], config: Config) -> dict[str, Any]:
    """The options with what the project says where the command line says nothing."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    said = {name: value for name in ("level", "seed") if (value := getattr(config, name)) is not None}
    return {**chosen, **{name: value for name, value in said.items() if context.get_parameter_source(name) != given}}


def write_wanted(report: Report, *, declare: bool, inputs: bool) -> None:
    """Write what was asked for, and say on stderr what was written."""
    from gradsmith.writing.comments import declarations
    from gradsmith.writing.inputs import declared_inputs

    # Comments first: both may change one file, and a file that has changed is read again.
    if declare:
        _write(declarations(report), "declared", "surrogate")
    if inputs:
        _write(declared_inputs(report), "wrote the inputs of", "subject")


def _write(files: Sequence[ChangedFile], did: str, what: str) -> None:
    for file in files:
        file.write()
        click.echo(f"{did} {plural(file.count, what)} in {shown_path(file.path)}", err=True)
    if not files:
        click.echo(f"nothing to write: no {what} of which this could be said", err=True)

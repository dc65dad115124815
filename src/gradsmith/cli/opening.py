"""`--open`: the report as a page in the browser."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradsmith.findings import GradsmithError, Report
from gradsmith.report import format_for, render

if TYPE_CHECKING:
    from pathlib import Path

F = TypeVar("F", bound=Callable[..., Any])
_ASKED = "gradsmith.open"


def open_option(command: F) -> F:
    """--open, which the command itself need not know about."""
    return click.option(
        "--open", is_flag=True, expose_value=False, callback=_note, help="Show the HTML report in the browser, too."
    )(command)


def _note(context: click.Context, _: click.Parameter, asked: bool) -> None:
    context.meta[_ASKED] = asked


def opened(report: Report, written: list[str]) -> None:
    """Open the first HTML file among those that were written; without one, a page in the cache folder."""
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(_ASKED):
        return
    import webbrowser
    from pathlib import Path

    page = next((Path(file) for file in written if format_for(file) == "html"), None) or _kept(report)
    if not webbrowser.open(page.resolve().as_uri()):
        click.echo(f"No browser could be started here. Open this file: {page}", err=True)


def _kept(report: Report) -> Path:
    from gradsmith.storage import cache_folder  # with tempfile and what that imports: 4 ms

    folder = cache_folder("pages")
    if folder is None:
        raise GradsmithError("--open finds no folder to write the page to; add --output report.html")
    page = folder / "report.html"
    text = render(report, "html")
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return page

"""How far the work is: each verdict as it is known, and a bar on a terminal. Both on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from gradsmith.findings import Report
from gradsmith.report.full_format import verdict_line
from gradsmith.report.style import Style


class Progress:
    """Tells verdicts while other subjects are still being checked; rich is loaded only where there is a terminal."""

    def __init__(self, total: int, *, tell: bool) -> None:
        self.total = total
        self.tell = tell  # not where the report is meant for a program: somebody may read both streams as one
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("checking"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
            )
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total or None)
        return self

    def advance(self, report: Report) -> None:
        """One subject is done."""
        for subject in report.subjects:
            line = verdict_line(subject, Style(False))
            if self.bar is not None:
                self.bar.update(self.task, advance=1, description=subject.name)
                self.bar.console.print(line, markup=False, highlight=False)
            elif self.tell:
                print(line, file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

"""How far the work is: a bar on a terminal, with the subject and what it is tried for. On stderr; gone when the report comes."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from gradsmith.findings import Report
from gradsmith.report.escaping import escaped
from gradsmith.report.verdicts import word


class Progress:
    """Moves while subjects are being checked; rich is loaded only where there is a terminal. Each verdict is told once, in the report."""

    def __init__(self, total: int) -> None:
        self.total = total
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
                TextColumn("{task.description}", markup=False),
            )
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total or None)
        return self

    def trying(self, what: str) -> None:
        """`Swish: vmap-mismatch` is being tried now."""
        if self.bar is not None:
            self.bar.update(self.task, description=what)

    def advance(self, report: Report) -> None:
        """One subject is done."""
        for subject in report.subjects if self.bar is not None else ():
            self.bar.update(self.task, advance=1, description=escaped(f"{subject.name}: {word(subject.verdict)}"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

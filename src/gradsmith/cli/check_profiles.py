"""`gradsmith check --profile`: what was checked is profiled, too, each subject in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradsmith.checking.subjects import Wanted
from gradsmith.cli.profile_process import profiled, status
from gradsmith.findings import GradsmithError, Report
from gradsmith.folding import profiled as with_profiles
from gradsmith.lab.process.stopping import Stopped

_BUDGET = 4.0  # s of measuring for one subject, as `gradsmith profile` takes


def with_profiles_of(report: Report, work: Sequence[Wanted], wishes: Mapping[str, Any], timeout: float) -> Report:
    """The report with a profile at every subject that ran. What cannot be profiled is told in a note."""
    task = {**wishes, "reference": None, "try_remedies": False, "compare": None, "budget": _BUDGET}
    task |= {"growth": True, "threads": 0, "trace": False}
    ran = {s.name for s in report.subjects if s.verdict in ("verified", "refuted")}
    names = [(job, name) for job in work for name, _ in job.subjects if name in ran or name.rpartition(".")[2] in ran]
    try:
        with status() as say:
            for job, name in names:
                asked = {**task, "path": job.path, "module": job.module, "name": name}
                try:
                    report = with_profiles(report, [profiled(asked, timeout, say)["profile"]])
                except GradsmithError as error:
                    report.notes.append(f"{name} is not profiled: {error}")
    except Stopped as stopped:
        stopped.report = report
        raise
    return report

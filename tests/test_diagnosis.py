"""Every cause names its own BAD."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradsmith.diagnosis import Cause, causes
from gradsmith.findings import Finding, Report


def all_findings(report: Report) -> list[Finding]:
    return [g for f in report.findings for g in (f, *f.symptoms)]


@pytest.mark.parametrize("cause", list(causes().values()), ids=lambda cause: cause.name)
def test_each_cause_names_its_own_example(cause: Cause, check_source: Callable[..., Report]) -> None:
    report = check_source(cause.bad, level="quick")
    named = {f.cause for f in all_findings(report) if f.rule == "wrong-gradient"}
    assert cause.name in named, [(f.rule, f.cause, f.message) for f in all_findings(report)]


@pytest.mark.parametrize("cause", list(causes().values()), ids=lambda cause: cause.name)
def test_each_cause_has_a_page(cause: Cause) -> None:
    assert len(cause.title) > 10
    assert len(cause.page) > 30

"""A pytest plugin: what each test came to is written down at once, and a run that was cut off goes on behind it.

Loaded by tools/compatibility.py, which says in GRADSMITH_TOLD where to write. On a busy machine the tests that touch torch take
longer than anything may run there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

TOLD = Path(os.environ["GRADSMITH_TOLD"])
_BEFORE = frozenset(json.loads(line)["id"] for line in TOLD.read_text().splitlines()) if TOLD.is_file() else frozenset()
_outcomes: dict[str, str] = {}
_tells = True


def pytest_configure(config: pytest.Config) -> None:
    global _tells
    _tells = not hasattr(config, "workerinput")  # with xdist, the process that hands out the tests tells


def _tell(test: str, outcome: str) -> None:
    if not _tells:
        return
    with TOLD.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": test, "outcome": outcome}) + "\n")


@pytest.hookimpl(trylast=True)  # after markers were looked at
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in _BEFORE])
    items[:] = [item for item in items if item.nodeid not in _BEFORE]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome != "passed":
        _outcomes[report.nodeid] = report.outcome
    if report.when == "teardown":
        _tell(report.nodeid, _outcomes.get(report.nodeid, "passed"))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(report.nodeid, "failed")

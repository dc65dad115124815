"""pytest: `assert_gradients`, the `gradsmith` fixture and marker, and `pytest --gradsmith`.

`pytest --gradsmith` notes every custom Function that the tests exercise and verifies each at the end of the run, as one
more test item. Loading this plugin imports neither torch nor the rest of gradsmith.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from gradsmith.findings import Report
    from gradsmith.recording.tape import Tape

_HELP = "verify every custom autograd Function that the tests run (gradsmith)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradsmith")
    group.addoption("--gradsmith", action="store_true", help=_HELP)
    group.addoption("--no-gradsmith-explain", action="store_true", help="do not explain errors of autograd (gradsmith)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "gradsmith(**options): verify every custom Function this test runs; options are those of gs.check"
    )
    if config.getoption("--gradsmith"):
        config.pluginmanager.register(_Session(), "gradsmith-session")


@pytest.fixture
def gradsmith() -> Callable[..., Report]:
    """`gradsmith(fn, *inputs, **options)` in a test: the report, or a failure that reads like it."""
    from gradsmith.checking.asserting import assert_gradients

    return assert_gradients


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """`@pytest.mark.gradsmith`: the test itself fails where a Function it runs is not verified."""
    marker = item.get_closest_marker("gradsmith")
    if marker is None:
        return (yield)
    from gradsmith.recording import record

    with record() as tape:
        result = yield
    _quiet(tape.check(**marker.kwargs).raise_if_failed)
    return result


def _quiet(assertion: Callable[[], None]) -> None:
    """Fail with the report alone: the frames between are ours."""
    from gradsmith.findings import GradientError

    try:
        assertion()
    except GradientError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, pytest.TestReport]:
    """Below a failure that autograd raised stands what it means. Tests that fail for other reasons cost nothing."""
    report: pytest.TestReport = yield
    # Nobody but torch raises what is explained, and a project without it must not pay for loading anything.
    wanted = "torch" in sys.modules and not item.config.getoption("--no-gradsmith-explain")
    if not wanted or not report.failed or call.excinfo is None or isinstance(call.excinfo.value, AssertionError):
        return report
    from gradsmith.explaining import explain

    if text := explain(call.excinfo.value).short():
        report.sections.append(("gradsmith explains", text))
    return report


@dataclass
class _Verdict:
    """One Function that the tests ran: verified, or the report that says why not. Travels from xdist's workers."""

    nodeid: str
    failure: str
    seconds: float

    def publish(self, config: pytest.Config) -> None:
        """As a test item of its own: counted, shown, in the exit status and in junit files."""
        place = (self.nodeid, None, self.nodeid)
        outcome: Literal["passed", "failed"] = "failed" if self.failure else "passed"
        call = pytest.TestReport(self.nodeid, place, {}, outcome, self.failure or None, "call", duration=self.seconds)
        config.hook.pytest_runtest_logstart(nodeid=self.nodeid, location=place)
        config.hook.pytest_runtest_logreport(report=call)
        config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(self.nodeid, place, {}, "passed", None, "teardown")
        )
        config.hook.pytest_runtest_logfinish(nodeid=self.nodeid, location=place)


class _Session:
    """One tape from the first test to the last; each process of pytest-xdist has its own."""

    def __init__(self) -> None:
        self.tape: Tape | None = None
        self.from_workers: dict[str, _Verdict] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        # Nothing to hear before torch is imported, and importing it is for the tests to decide.
        if self.tape is None and "torch" in sys.modules:
            from gradsmith.recording import Tape

            self.tape = Tape(modules=False)
            self.tape.__enter__()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        try:
            result = yield
        finally:
            if self.tape is not None:
                self.tape.__exit__(None, None, None)
        verdicts = _verdicts(self.tape) if self.tape is not None else []
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["gradsmith"] = [vars(v) for v in verdicts]
            return result
        for verdict in [*verdicts, *self.from_workers.values()]:
            verdict.publish(session.config)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist has ended: several may have run one Function, and one failure is enough."""
        for data in getattr(node, "workeroutput", {}).get("gradsmith", ()):
            verdict = _Verdict(**data)
            known = self.from_workers.get(verdict.nodeid)
            if known is None or (verdict.failure and not known.failure):
                self.from_workers[verdict.nodeid] = verdict


def _verdicts(tape: Tape) -> list[_Verdict]:
    if not tape.functions:
        return []  # and the checks are not loaded
    from gradsmith.checking.options import Options
    from gradsmith.checking.recorded import check_recorded

    found = []
    for cls in tape.functions:
        start = time.perf_counter()
        report = check_recorded(tape, cls, Options())
        nodeid = f"gradsmith::{cls.__module__}.{cls.__qualname__}"
        found.append(_Verdict(nodeid, "" if report.ok else str(report), time.perf_counter() - start))
    return found

"""pytest: `assert_gradients`, the `gradsmith` fixture and marker, and `pytest --gradsmith`.

`pytest --gradsmith` notes every custom Function that the tests exercise and verifies each at the end of the run, as one
more test item. Loading this plugin imports neither torch nor the rest of gradsmith.
"""

from __future__ import annotations

import fnmatch
import os
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

from gradsmith.torch_here import too_old

if TYPE_CHECKING:
    from gradsmith.findings import Report
    from gradsmith.recording.tape import Tape

_HELP = "verify every custom autograd Function that the tests run (gradsmith)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradsmith")
    group.addoption("--gradsmith", action="store_true", help=_HELP)
    group.addoption(
        "--gradsmith-unverified",
        choices=["fail", "skip", "xfail"],
        help="what a Function that is neither verified nor refuted counts as [fail; skip where the time was spent] (gradsmith)",
    )
    group.addoption(
        "--gradsmith-budget",
        type=float,
        metavar="SECONDS",
        help="for all checks together [30 s and half of what the tests took] (gradsmith)",
    )
    group.addoption(
        "--gradsmith-third-party", action="store_true", help="check Functions of installed packages, too (gradsmith)"
    )
    group.addoption("--no-gradsmith-explain", action="store_true", help="do not explain errors of autograd (gradsmith)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "gradsmith(**options): verify every custom Function this test runs; options are those of gs.check"
    )
    if config.getoption("--gradsmith"):
        if trouble := too_old("pytest --gradsmith"):
            raise pytest.UsageError(trouble)
        config.pluginmanager.register(_Session(config), "gradsmith-session")


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


Outcome = Literal["passed", "failed", "skipped"]


@dataclass
class _Verdict:
    """One Function that the tests ran: verified, or the report that says why not. Travels from xdist's workers."""

    nodeid: str
    outcome: str  # passed, failed, skipped or xfailed
    text: str = ""
    short: str = ""  # rule and place, for the summary
    path: str = ""
    line: int = 0
    seconds: float = 0.0
    qualname: str = ""

    def publish(self, config: pytest.Config) -> None:
        """As a test item of its own: counted, shown, in the exit status and in junit files."""
        place = (self.path or self.nodeid, self.line or None, self.nodeid)
        outcome: Outcome = {"passed": "passed", "failed": "failed"}.get(self.outcome, "skipped")  # type: ignore[assignment]
        call = pytest.TestReport(self.nodeid, place, {}, outcome, self._shown(), "call", duration=self.seconds)
        if self.outcome == "xfailed":
            call.wasxfail = self.short
        config.hook.pytest_runtest_logstart(nodeid=self.nodeid, location=place)
        config.hook.pytest_runtest_logreport(report=call)
        config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(self.nodeid, place, {}, "passed", None, "teardown")
        )
        config.hook.pytest_runtest_logfinish(nodeid=self.nodeid, location=place)

    def _shown(self) -> Any:
        if self.outcome == "passed":
            return None
        if self.outcome == "failed":
            return _failure(self)
        return (self.path or self.nodeid, self.line or None, f"Skipped: {self.short}")


def _failure(verdict: _Verdict) -> Any:
    """The report as pytest shows a failure: its text, and one line with rule and place for the summary."""
    from _pytest._code.code import ReprFileLocation, TerminalRepr

    class Told(TerminalRepr):
        reprcrash = ReprFileLocation(verdict.path or verdict.nodeid, verdict.line, verdict.short)

        def toterminal(self, tw: Any) -> None:
            tw.line(verdict.text)

        def __str__(self) -> str:
            return verdict.text

    return Told()


class _Session:
    """One tape from the first test to the last; each process of pytest-xdist has its own."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tape: Tape | None = None
        self.from_workers: dict[str, _Verdict] = {}
        self.notes: list[str] = []
        self.ran: set[tuple[str, str]] = set()

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
        start = time.monotonic()
        try:
            result = yield
        finally:
            if self.tape is not None:
                self.tape.__exit__(None, None, None)
        verdicts = self._verdicts(time.monotonic() - start)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["gradsmith"] = {"verdicts": [vars(v) for v in verdicts], "notes": self.notes}
            return result
        verdicts = [*verdicts, *self.from_workers.values()]
        session.testscollected += len(verdicts)  # they are items, too: the percentage ends at 100
        for verdict in verdicts:
            self.ran.add((os.path.realpath(verdict.path), verdict.qualname))
            verdict.publish(session.config)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist has ended: several may have run one Function, and one failure is enough."""
        told = getattr(node, "workeroutput", {}).get("gradsmith", {})
        self.notes += [note for note in told.get("notes", ()) if note not in self.notes]
        for data in told.get("verdicts", ()):
            verdict = _Verdict(**data)
            known = self.from_workers.get(verdict.nodeid)
            if known is None or _WORSE.index(verdict.outcome) > _WORSE.index(known.outcome):
                self.from_workers[verdict.nodeid] = verdict

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What the items do not say: the time it took, what was left out, and Functions that no test runs."""
        unreached = self._unreached()
        if not self.notes and not unreached:
            return
        terminalreporter.section("gradsmith")
        for note in self.notes:
            terminalreporter.line(note)
        if unreached:
            terminalreporter.line(f"no test runs {len(unreached)} of the project's custom gradients:")
            for line in unreached[:_MOST]:
                terminalreporter.line(f"  {line}")
            if len(unreached) > _MOST:
                terminalreporter.line(f"  and {len(unreached) - _MOST} more")

    def _unreached(self) -> list[str]:
        """Functions in the project's files, tests aside, that none of the tests ran; nothing where none ran at all."""
        if not self.ran:
            return []
        from gradsmith.checking.subjects import functions_in

        root = self.config.rootpath
        patterns = [*self.config.getini("python_files"), "conftest.py"]
        found = []
        for function in functions_in([root]):
            path = os.path.realpath(function.file.path)
            in_tests = any(fnmatch.fnmatch(os.path.basename(path), pattern) for pattern in patterns)
            if function.kind == "function" and not in_tests and (path, function.qualname) not in self.ran:
                shown = os.path.relpath(path, root).replace(os.sep, "/")
                found.append(f"{shown}:{function.node.lineno}: {function.qualname}")
        return found

    def _verdicts(self, took: float) -> list[_Verdict]:
        if self.tape is None or not self.tape.functions:
            return []  # and the checks are not loaded
        start = time.monotonic()  # loading the checks is part of what they take
        from gradsmith.checking.allowed import FREE, SHARE
        from gradsmith.checking.options import Options
        from gradsmith.checking.recorded import check_functions, not_ours, own_functions
        from gradsmith.checking.run import OUT_OF_TIME
        from gradsmith.findings import plural

        option = self.config.getoption
        budget = option("--gradsmith-budget")
        budget = FREE + SHARE * took if budget is None else budget
        mine, others = own_functions(self.tape.functions, third_party=option("--gradsmith-third-party"))
        loading = time.monotonic() - start
        # The end of the run, summary and clearing up, takes about as long again as loading did, and is promised, too.
        reports = check_functions(self.tape, mine, Options(), max(0.0, budget - 2 * loading))
        seconds = time.monotonic() - start
        unjudged = sum(OUT_OF_TIME in s.reason for report in reports.values() for s in report.subjects)
        self.notes += [_with_our_options(not_ours(others))] if others else []
        self.notes.append(
            f"{plural(len(mine), 'custom gradient')} checked in {seconds:.0f} s of the {budget:.0f} s that checks may take (--gradsmith-budget)"
            + (f"; {unjudged} of them could not be judged in that time" if unjudged else "")
        )
        share = seconds / max(1, len(mine))
        return [_verdict(cls, report, share, option("--gradsmith-unverified")) for cls, report in reports.items()]


_WORSE = ("passed", "skipped", "xfailed", "failed")
_MOST = 10


def _verdict(cls: type, report: Report, seconds: float, unverified: str | None) -> _Verdict:
    from gradsmith.checking.run import OUT_OF_TIME

    nodeid = f"gradsmith::{cls.__module__}.{cls.__qualname__}"
    subject = report.subjects[0]
    home = {"path": subject.path or "", "line": subject.line or 0, "qualname": cls.__qualname__}
    if report.ok:
        return _Verdict(nodeid, "passed", seconds=seconds, **home)  # type: ignore[arg-type]
    refuted = bool(report.errors) or subject.verdict == "refuted"
    # A limit that nobody set must not fail a suite on the day the machine is busy.
    unverified = unverified or ("skip" if OUT_OF_TIME in subject.reason else "fail")
    outcome = "failed" if refuted else {"fail": "failed", "skip": "skipped", "xfail": "xfailed"}[unverified]
    short = _with_our_options(f"not verified: {subject.reason}")
    if report.errors:
        from gradsmith.report.place import place

        first = report.errors[0]
        short = f"{first.rule} at {place(first)}"
        home |= {"path": first.path or home["path"], "line": first.line or home["line"]}
    return _Verdict(nodeid, outcome, _with_our_options(str(report)), short, seconds=seconds, **home)  # type: ignore[arg-type]


def _with_our_options(text: str) -> str:
    """The options of `gradsmith record`, as pytest has them."""
    return text.replace("(--budget ", "(--gradsmith-budget ").replace("(--third-party ", "(--gradsmith-third-party ")

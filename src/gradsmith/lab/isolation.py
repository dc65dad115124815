"""Check subjects in processes of their own: they may hang, crash or eat memory, and the next one is still checked.

A parent that has computed must not fork (its thread pools are gone in the child, and the child hangs), so a zygote
forks on its behalf. Resident memory is watched from outside; address space that is only reserved does not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gradsmith.catalog import find
from gradsmith.findings import Finding, GradsmithError, Report, Severity, Subject
from gradsmith.lab.stages import guessing_mark
from gradsmith.lab.waiting import kept_waiting

_POLL = 0.02


@dataclass(frozen=True)
class Limits:
    """How long and how much one subject may take. While others have the processor its time stands still."""

    seconds: float = 120.0
    bytes: int = 8 << 30


@dataclass
class Job:
    """Subjects of one file or module, as they travel to the zygote: names, never objects."""

    path: str | None
    module: str | None
    subjects: list[tuple[str, int | None]]
    stubs: list[str] = field(default_factory=list)
    inputs: str | None = None
    tensors: str | None = None
    device: str | None = None
    whole: bool = False  # no subject was singled out: what the module declares inputs for is a subject, too


class Zygote:
    """A running zygote and the conversation with it. Use it as a context manager."""

    def __init__(self, limits: Limits, *, warm: bool = False) -> None:
        self.limits = limits
        self.warm = warm  # import the compiler beforehand, for levels that use it
        self.folder = tempfile.TemporaryDirectory(prefix="gradsmith-")
        self.log = str(Path(self.folder.name) / "output.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.cpu_seconds = 0.0  # what the last subject used

    def __enter__(self) -> Zygote:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self.folder.cleanup()

    def run(self, job: Job, options: dict[str, Any]) -> Iterator[Report]:
        """One report per subject, as they are finished."""
        subjects = list(job.subjects)
        self.until_ready()
        self._send(path=job.path, module=job.module, stubs=job.stubs, log=self.log)
        keeper = self._reply(["keeper"], None)["keeper"]
        answer = self._reply(["imported", "keeper_exit"], keeper)
        if not answer.get("imported"):
            reason = answer.get("error") or _death(answer)
            # A package that is missing here is no fault of the Function.
            weight: Severity | Literal[""] = "warning" if "not installed" in reason else ""
            yield from (_unrun("import-failed", job, name, line, reason, weight) for name, line in subjects)
            self._until_free(answer)
            return
        known = {name.rpartition(".")[2] for name, _ in subjects}
        subjects += [(name, None) for name in answer["declared"] if job.whole and name.rpartition(".")[2] not in known]
        for name, line in subjects:
            yield self._check(job, name, line, options)
        self._send(done=True)
        self._until_free({})

    def _check(self, job: Job, name: str, line: int | None, options: dict[str, Any]) -> Report:
        result = Path(self.folder.name) / "result.json"
        result.unlink(missing_ok=True)
        guessing_mark(str(result)).unlink(missing_ok=True)
        self._send(
            subject=name,
            line=line,
            path=job.path,
            result=str(result),
            inputs=job.inputs,
            tensors=job.tensors,
            device=job.device,
            options=options,
        )
        worker = self._reply(["worker"], None)["worker"]
        answer = self._reply(["worker_exit"], worker)
        self.cpu_seconds = float(answer.get("cpu", 0.0))
        if result.is_file():
            return Report.from_dict(json.loads(result.read_text(encoding="utf-8")))
        rule = {"time": "timed-out", "memory": "out-of-memory"}.get(answer.get("killed", ""), "crashed")
        if rule == "crashed" and options.get("empty", True) and options.get("level") != "quick":
            return _survived(self._check(job, name, line, {**options, "empty": False}), _death(answer), "of size 0")
        if rule == "crashed" and options.get("level") != "quick":
            gentle = {**options, "level": "quick"}
            return _survived(self._check(job, name, line, gentle), _death(answer), "other than the example's")
        reason = _death(answer) if rule == "crashed" else self._limit_text(rule)
        if guessing_mark(str(result)).exists():
            # Nobody asked for these values, and what they did to a kernel says nothing about it.
            return _unrun(rule, job, name, line, f"{reason} on guessed inputs (declare inputs that fit)", "warning")
        return _unrun(rule, job, name, line, reason)

    def _limit_text(self, rule: str) -> str:
        if rule == "timed-out":
            return f"did not finish within {self.limits.seconds:g} s (raise the limit with --timeout)"
        return f"grew past {self.limits.bytes / 2**30:.3g} GiB of memory (raise the limit with --memory-limit)"

    def _until_free(self, answer: dict[str, Any]) -> None:
        if "keeper_exit" not in answer:
            self._reply(["keeper_exit"], None)

    def _start(self) -> None:
        request_read, self.requests = os.pipe()
        self.replies, reply_write = os.pipe()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gradsmith.lab.zygote", str(request_read), str(reply_write)),
                *(["--warm"] if self.warm else []),
            ],
            pass_fds=(request_read, reply_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        os.close(request_read)
        os.close(reply_write)
        self.buffer = b""
        self.unread: list[dict[str, Any]] = []
        self.ready = False

    def until_ready(self) -> None:
        """Wait for its imports, which take as long as `import torch`; a caller may have other things to do meanwhile."""
        if not self.ready:
            self._reply(["ready"], None)
            self.ready = True

    def _stop(self) -> None:
        if self.process is None:
            return
        for descriptor in (self.requests, self.replies):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()

    def _send(self, **message: Any) -> None:
        os.write(self.requests, json.dumps(message).encode() + b"\n")

    def _reply(self, wanted: list[str], watched: int | None) -> dict[str, Any]:
        """The next reply that has one of the wanted keys, while the watched process is held to its limits."""
        started = time.monotonic()
        killed = ""
        while True:
            *lines, self.buffer = self.buffer.split(b"\n")
            self.unread += [json.loads(text) for text in lines]
            # Not the next one only: a keeper may have imported before the zygote gets to say that it forked it.
            found = next((m for m in self.unread if any(key in m for key in wanted)), None)
            if found is not None:
                self.unread.remove(found)
                return {**found, "killed": killed}
            ready, _, _ = select.select([self.replies], [], [], _POLL)
            if ready:
                piece = os.read(self.replies, 65536)
                if not piece:
                    raise GradsmithError(f"the checking process died: {self._last_words()}")
                self.buffer += piece
            elif watched and not killed:
                if time.monotonic() - started - kept_waiting(watched) > self.limits.seconds:
                    killed = "time"
                elif _resident(watched) > self.limits.bytes:
                    killed = "memory"
                if killed:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(watched, signal.SIGKILL)

    def _last_words(self) -> str:
        assert self.process is not None
        self.process.wait()
        said = self.process.stderr.read().decode(errors="replace").strip() if self.process.stderr else ""
        return said.splitlines()[-1] if said else f"exit status {self.process.returncode}"


def check_isolated(fn: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Report:
    """`gs.check(..., isolate=True)`: the subject travels by name; given tensors through a private file."""
    import torch

    from gradsmith.lab.target import resolve

    target = resolve(fn)
    subject = target.function or target.original
    if target.path is None or not isinstance(subject, type):
        raise GradsmithError(f"isolate=True needs a class in a file; {target.name} cannot be found by name elsewhere")
    with Zygote(Limits()) as zygote:
        job = Job(target.path, None, [(subject.__qualname__, target.line)])
        chosen = {k: v for k, v in asdict(options).items() if not callable(v)}
        if inputs or kwargs:
            stored = str(Path(zygote.folder.name) / "inputs.pt")
            torch.save([list(inputs), kwargs], stored)
            job.tensors = stored
        return next(iter(zygote.run(job, chosen)))


def _unrun(
    rule_name: str, job: Job, name: str, line: int | None, reason: str, severity: Severity | Literal[""] = ""
) -> Report:
    rule = find(rule_name)
    where = job.path or job.module or ""
    message = f"{name} could not be examined: {reason}."
    found = Finding(message, function=name, path=where, line=line, column=0, severity=severity)
    finding = rule.stamped(found, "check")
    no_triton = rule_name == "import-failed" and "imports triton" in reason
    conditions = {"triton interpreter": "not tried: triton is not installed"} if no_triton else {}
    subject = Subject(name, "unverified", f"{rule_name}: {reason}", where, line, conditions=conditions)
    return Report(findings=[finding], subjects=[subject], functions=1)


def _survived(report: Report, death: str, without: str) -> Report:
    """A second try without some tensors; if that one lives, they were what the subject died of."""
    if any(f.rule == "crashed" for f in report.findings):
        return report
    subject = report.subjects[0]
    message = f"{subject.name}: {death}; without tensors {without} it did not, and so they were left out."
    finding = Finding(
        message, severity="warning", function=subject.name, path=subject.path, line=subject.line, column=0
    )
    return replace(report, findings=[*report.findings, find("crashed").stamped(finding, "check")])


def _death(answer: dict[str, Any]) -> str:
    if answer.get("killed") == "time":
        return "it did not finish in time"
    status = answer.get("worker_exit", answer.get("keeper_exit", 0))
    if status < 0:
        return f"the process died by {signal.Signals(-status).name}"
    return f"the process ended itself with exit status {status}"


def _resident(pid: int) -> int:
    """Resident bytes of a process, 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0

"""`Profile`: what was measured of one subject, and the questions that rules and renderers ask of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gradsmith.cells import cell_number
from gradsmith.checking.verdict import measured
from gradsmith.findings import Finding, InputsFrom, Report, Severity, jsonable, plural
from gradsmith.folding import profiled
from gradsmith.profiling.attribution import LineUse, OpUse, floor_seconds, kernel_seconds
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import Ratio, Spread
from gradsmith.profiling.events import Event, FunctionCalls, Recording, Saved
from gradsmith.profiling.flow import DataFlow, LoopUse
from gradsmith.profiling.growth import Growth
from gradsmith.profiling.lines import Site
from gradsmith.profiling.machine import Machine
from gradsmith.profiling.whatif import LONG, Estimate, together
from gradsmith.source.loaded import line_of
from gradsmith.source.spans import LoopSpan

SCHEMA = 1
# By how much the attribution may be wrong: a rough factor, chosen by looking at the pairs of profile_pairs up to held_out_3 in which
# something is only left out. How often the bounds hold is what profile_cases.py prints.
_UNSURE = 1.5
MATTERS = 0.10  # the share of time from which on a cause is a warning, not a remark


@dataclass(frozen=True)
class Remedy:
    """Another way to compute the same, and how many times faster it is, measured with `--try`."""

    name: str
    gain: Ratio | None = None
    saved_bytes: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Plain:
    """The Function's own forward under autograd: how many times slower the Function is, and what the other needs."""

    slower: Ratio
    saved_bytes: int
    ops: int
    written_bytes: int


@dataclass
class Profile:
    """The measurements of one subject. Times in seconds, memory in bytes.

    >>> import torch, gradsmith as gs
    >>> profile = gs.profile(torch.tanh, torch.randn(64, 64, requires_grad=True), budget=0.2)
    >>> profile.forward_s > 0 and profile.backward_s > 0
    True
    >>> [op.op for op in profile.ops if op.phase == "forward" and op.op != "detach"]
    ['tanh']
    """

    name: str
    path: str | None
    line: int | None
    inputs: str
    forward: Spread
    backward: Spread
    both: Spread
    rounds: int
    best_s: float  # the quickest round: what is left when nothing else ran on the machine
    saved_bytes: int
    peak_bytes: int
    ops: list[OpUse]
    lines: list[LineUse]
    saved: list[Saved]
    machine: Machine
    growth: list[Growth] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    recording: Recording = field(default_factory=Recording, repr=False)
    spent: Sequence[float] = field(default=(), repr=False)
    kernels: Sequence[float] = field(default=(), repr=False)  # of that, the kernel alone, in the quickest round
    observed: Sequence[float] = field(default=(), repr=False)  # the quickest of each event in the attribution passes
    bench: Bench | None = field(default=None, repr=False)
    plain: Plain | None = None
    inputs_from: InputsFrom = "given"
    disturbed: float = 0.0  # the share of the measuring in which others had the processor

    @property
    def forward_s(self) -> float:
        return self.forward.median

    @property
    def backward_s(self) -> float:
        return self.backward.median

    @property
    def total_s(self) -> float:
        return self.forward.median + self.backward.median

    @property
    def forward_ops(self) -> int:
        return self.recording.count("forward")

    @property
    def backward_ops(self) -> int:
        return self.recording.count("backward")

    @property
    def allocations(self) -> int:
        return sum(len(e.fresh) for e in self.recording.events)

    @property
    def flops(self) -> int:
        return sum(e.flops for e in self.recording.events)

    @property
    def bytes_moved(self) -> int:
        return sum(e.read_bytes + e.written_bytes for e in self.recording.events)

    @property
    def bandwidth_share(self) -> float:
        """Bytes moved per second against what this machine can move."""
        return self.bytes_moved / self.total_s / self.machine.peak_bandwidth if self.total_s else 0.0

    @property
    def arithmetic_share(self) -> float:
        return self.flops / self.total_s / self.machine.peak_arithmetic if self.total_s else 0.0

    @property
    def python_share(self) -> float:
        """The part of the time in which no kernel had anything to do: Python, dispatch, bookkeeping of the graph."""
        busy = sum(min(k, s) for k, s in zip(self._kernels, self.spent))
        return max(0.0, 1 - busy / self.total_s) if self.total_s else 0.0

    @cached_property
    def _kernels(self) -> list[float]:
        return kernel_seconds(self.recording.events, self.observed, self.machine)

    @cached_property
    def flow(self) -> DataFlow:
        return DataFlow(self.recording)

    @property
    def loops(self) -> list[LoopUse]:
        return self.flow.loops

    @cached_property
    def _children(self) -> dict[int, list[Event]]:
        found: dict[int, list[Event]] = {}
        for event in self.recording.events:
            if event.parent is not None:
                found.setdefault(event.parent, []).append(event)
        return found

    def with_backward(self, events: Iterable[Event]) -> list[Event]:
        """These events of forward, and what autograd runs for them in backward."""
        own = list(events)
        return own + [child for e in own for child in self._children.get(e.index, ())]

    def seconds(self, events: Iterable[Event]) -> float:
        return sum(self.spent[i] for i in {e.index for e in events} if i < len(self.spent))

    def share(self, events: Iterable[Event]) -> float:
        return self.seconds(events) / self.total_s if self.total_s else 0.0

    def gain(self, removed: float, added: float = 0.0) -> Estimate:
        """How many times faster the whole becomes when `removed` seconds go and `added` come, with bounds.

        What comes is estimated from the machine's limits, which are best cases; on a busy machine it suffers like the rest.
        What any run costs was spread over all operations, and stays when some of them go.
        """
        new = Estimate.of(added)
        least, most = self._going(removed)
        return Estimate(self._faster(removed, new), self._faster(least, new.high), self._faster(most, new.low))

    def _going(self, removed: float) -> tuple[float, float]:
        """At least and at most what goes: the attribution may be wrong by a factor of `_UNSURE` in the part that goes or in
        the part that stays, whichever is smaller."""
        stays = self.total_s - removed
        least = max(removed / _UNSURE, self.total_s - _UNSURE * stays)
        most = min(removed * _UNSURE, self.total_s - stays / _UNSURE)
        return least, max(most, removed)

    def _faster(self, removed: float, added: float) -> float:
        busy = max(1.0, self.total_s / self.best_s) if self.best_s else 1.0
        stays = self.machine.run_s * removed / self.total_s if self.total_s else 0.0
        left = max(self.total_s - removed + min(removed, added + stays) * busy, 1e-3 * self.total_s)
        return self.total_s / left if left else 1.0

    def together(self, events: Iterable[Event]) -> Estimate:
        """Seconds these operations would take if each line did all its iterations at once: what vectorising leaves."""
        return together(self.machine, events, self.kernels, self._long)

    @cached_property
    def _long(self) -> list[bool]:
        """Whether the kernel of each event takes far longer than its call; both as they were observed, in the same round."""
        call = floor_seconds(self.recording.events, self.observed, self.machine)
        return [kernel > LONG * call for kernel in self._kernels]

    def grows_with(self, loop: LoopSpan) -> str | None:
        """The dimension with which the number of iterations grows, if one was found."""
        for growth in self.growth:
            counts = [
                len({e.iterations[loop] for e in r.events if e.own_frames and loop in e.iterations})
                for r in growth.recordings
            ]
            if len(counts) > 1 and counts[-1] > counts[0] and growth.exponent_of(counts) > 0.5:
                return growth.label
        return None

    def finding(
        self,
        site: Site | None,
        message: str,
        *,
        advice: str,
        share: float,
        gain: float | None = None,
        severity: Severity | None = None,
        evidence: dict[str, Any] | None = None,
        argument: str | None = None,
        matters: float = MATTERS,
    ) -> Finding:
        """A finding on a line: a warning where the share says that it matters, else information."""
        level: Severity = severity or ("warning" if share >= matters else "info")
        text = site.text if site is not None else line_of(self.path, self.line)
        indent = len(text) - len(text.lstrip())
        return Finding(
            message=message,
            function=self.name,
            argument=argument,
            path=site.path if site is not None else self.path,
            line=site.line if site is not None else self.line,
            column=indent,
            snippet=text.rstrip("\n"),
            severity=level,
            advice=advice,
            evidence={
                "share": round(share, 4),
                **(_predicted(gain) if gain is not None and math.isfinite(gain) else {}),
                **(evidence or {}),
            },
        )

    def place(self, site: Site | None) -> str:
        """`my_ops.py:41`, or `cell 3, line 8`, for messages."""
        if site is None:
            return self.name
        cell = cell_number(site.path)
        return f"cell {cell}, line {site.line}" if cell is not None else f"{Path(site.path).name}:{site.line}"

    def at_loop(self, loop: LoopSpan, site: Site, message: str, **details: Any) -> Finding:
        """A finding on the line where a loop begins."""
        return self.finding(replace(site, line=loop.line, path=loop.path), message, **details)

    def function_calls(self) -> list[FunctionCalls]:
        """The custom Functions that took part, and how often each was called."""
        return self.recording.functions

    def report(self, beside: Report | None = None) -> Report:
        """The profile as a Report, for every format that reports have; or a report of `gs.check`, with this profile in it."""
        told = jsonable(self.to_dict())
        if beside is not None:
            return profiled(beside, [told])
        subject = measured(self.name, self.path, self.line, inputs_from=self.inputs_from)
        whole = Report(subjects=[subject], functions=1, files=1, notes=list(self.notes))
        return profiled(whole, [told])

    def to_dict(self) -> dict[str, Any]:
        from gradsmith.about import VERSION

        return {
            "schema": SCHEMA,
            "gradsmith": VERSION,
            "subject": {
                "name": self.name,
                "path": self.path,
                "line": self.line,
                "inputs": self.inputs,
                "inputs_from": self.inputs_from,
            },
            "seconds": {"forward": asdict(self.forward), "backward": asdict(self.backward), "both": asdict(self.both)},
            "rounds": self.rounds,
            "disturbed": self.disturbed,
            "ops": {"forward": self.forward_ops, "backward": self.backward_ops, "allocations": self.allocations},
            "memory": {
                "saved_bytes": self.saved_bytes,
                "peak_bytes": self.peak_bytes,
                "saved": [_saved(s) for s in self.saved],
            },
            "limits": {
                "flops": self.flops,
                "bytes_moved": self.bytes_moved,
                "bandwidth_share": self.bandwidth_share,
                "arithmetic_share": self.arithmetic_share,
                "python_share": self.python_share,
                "machine": asdict(self.machine),
            },
            "by_line": [asdict(use) for use in self.lines],
            "by_op": [asdict(use) for use in self.ops],
            "growth": [g.to_dict() for g in self.growth],
            "remedies": [asdict(r) for r in self.remedies],
            "findings": [f.to_dict() for f in self.findings],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return json.dumps(jsonable(self.to_dict()), indent=2, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write it; `.trace.json` is a Chrome trace that Perfetto opens, `.json` the numbers, `.html` a page, anything else the table."""
        from gradsmith.profiling.export import chrome_trace

        name = str(path)
        make: Callable[[], str] = self.to_json if name.endswith(".json") else lambda: str(self)
        if name.endswith((".html", ".htm")):
            make = self.to_html
        if name.endswith(".trace.json"):
            make = lambda: json.dumps(chrome_trace(self))  # noqa: E731
        Path(path).write_text(make(), encoding="utf-8")

    def to_html(self) -> str:
        """A page of its own, with charts."""
        from gradsmith.report.html_format import render_profiles

        return render_profiles([jsonable(self.to_dict())])

    def __str__(self) -> str:
        from gradsmith.report.profile_table import render

        return render(self.to_dict())

    def __repr__(self) -> str:
        from gradsmith.report.profile_table import duration

        times = f"forward {duration(self.forward.median)}, backward {duration(self.backward.median)}"
        return f"<Profile of {self.name}: {times}, {plural(len(self.findings), 'finding')}>"

    def _repr_html_(self) -> str:
        from gradsmith.report.in_notebook import profile_html

        return profile_html(jsonable(self.to_dict()), str(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython's prompt shows."""
        printer.text(str(self))


def _predicted(gain: float) -> dict[str, Any]:
    bounds = Estimate.of(gain)
    return {"predicted_gain": round(gain, 3), "predicted_range": [round(bounds.low, 3), round(bounds.high, 3)]}


def _saved(saved: Saved) -> dict[str, Any]:
    entry = asdict(saved)
    entry["site"] = f"{saved.site.path}:{saved.site.line}" if saved.site else None
    return entry

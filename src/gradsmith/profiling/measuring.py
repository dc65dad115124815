"""`gs.profile`: time it unobserved, watch it, let it grow, then ask every rule of the catalogue what it makes of that."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradsmith import catalog
from gradsmith.findings import Finding, one_line
from gradsmith.folding import fold
from gradsmith.lab import Target, resolve
from gradsmith.lab.process import device
from gradsmith.lab.process.state import preserved
from gradsmith.lab.process.waiting import kept_waiting
from gradsmith.lab.triton.traffic import traffic_notes
from gradsmith.profiling import attribution
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import Spread, Timing, timed
from gradsmith.profiling.events import Phase, Recording
from gradsmith.profiling.growth import grow
from gradsmith.profiling.machine import machine
from gradsmith.profiling.recorder import ready, record
from gradsmith.profiling.result import Profile
from gradsmith.profiling.roots import absorbed
from gradsmith.profiling.supply import Load, supplied

_REPEATS = 4
_OBSERVING = 20  # times longer than unobserved, where operations are small (measured: 10 on a busy machine)
_MANY_EVENTS = 20_000
# Of a slow subject: the first, one or two on the clock, and an observed one, which takes as long as several.
_ROUNDS = 6


@dataclass(frozen=True)
class Wishes:
    """How to profile: what `gs.profile` takes besides the subject and its inputs."""

    budget: float = 4.0
    growth: bool = True
    try_remedies: bool = False
    reference: Callable[..., Any] | None = None
    seed: int = 0
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    preview: bool = False
    on_progress: Callable[[str], None] | None = None
    on_measured: Callable[[Profile], None] | None = None  # told what is known before longer work begins

    def say(self, text: str) -> None:
        if self.on_progress is not None:
            self.on_progress(text)


def profile(
    fn: Any,
    *inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    budget: float = 4.0,
    growth: bool = True,
    try_remedies: bool = False,
    reference: Callable[..., Any] | None = None,
    seed: int = 0,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    preview: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> Profile:
    """Why is `fn` slow, and where did the memory go? Measures it and names line and remedy.

    `fn` is a Function class, its `.apply`, a custom op, an nn.Module or any callable; without inputs the declared ones
    are used, else recorded, else guessed ones. `budget` is about how many seconds to spend. `try_remedies=True` also runs the alternatives: the plain
    composition (or `reference`), torch.compile of it, and the built-in or gradsmith's own recurrent layer.

    >>> import torch
    >>> def rows(x):
    ...     return torch.stack([row * row for row in x])
    >>> result = profile(rows, torch.randn(64, 8, requires_grad=True), budget=0.5)
    >>> result.forward_ops
    65
    """
    wishes = Wishes(budget, growth, try_remedies, reference, seed, tuple(select), tuple(ignore), preview, on_progress)
    target = resolve(fn)
    if inputs or kwargs:
        return profile_target(target, tuple(inputs), dict(kwargs or {}), wishes)
    supply = supplied(target, seed)
    return profile_target(supply.target, supply.args, supply.kwargs, wishes, supply)


def profile_target(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], wishes: Wishes, supply: Load | None = None
) -> Profile:
    """Profile on these inputs; `supply` says where they come from, where the user did not give them."""
    with preserved(*args, *kwargs.values(), target.module):
        bench = Bench.of(target, args, kwargs, wishes.seed)
        if supply is not None:
            bench.inputs_from = supply.source
        result = _measured(bench, wishes)
    result.notes += supply.notes if supply is not None else ()
    return result


def _one_run(bench: Bench) -> None:
    call = bench.first()
    if call.has_backward and not bench.forward_only:
        call.backward()


def _measured(bench: Bench, wishes: Wishes) -> Profile:
    clock = device.clock()
    start = clock()
    wishes.say("first run")
    try:
        call = bench.first()
    except Exception as error:  # the user's forward: their error, in one line
        raised = _raised(bench, "forward", error)
        return _profile(bench, Timing(), [], wishes, [raised], ["forward raised; nothing could be measured"])
    notes: list[str] = []
    trouble: list[Finding] = []
    if call.has_backward:
        try:
            call.backward()
        except Exception as error:  # the user's backward; what forward costs is still measured
            bench.forward_only = True
            trouble.append(_raised(bench, "backward", error))
            notes.append("backward raised; forward was measured alone")
    else:
        notes.append("no output carries a gradient; forward was measured alone")
    once = clock() - start
    del call
    notes += traffic_notes(lambda: _one_run(bench))
    if once > wishes.budget / 4:
        wishes.say(f"one run takes {once:.2g} s; this will take about {_ROUNDS * once:.2g} s")
    else:
        wishes.say("timing")
    waited, start = kept_waiting(os.getpid()), time.monotonic()
    timing, recordings = _in_turns(bench, wishes)
    waited, took = kept_waiting(os.getpid()) - waited, time.monotonic() - start
    timing.disturbed = min(1.0, waited / took) if took > 0 else 0.0
    if recordings[0].stopped and not trouble:
        notes.append(f"the attribution covers the part before it stopped: {recordings[0].stopped}")
    return _profile(bench, timing, recordings, wishes, trouble, notes)


def _in_turns(bench: Bench, wishes: Wishes) -> tuple[Timing, list[Recording]]:
    """Clock and attribution in turns: the machine is not the same from one second to the next. Each moment counts alike."""
    clock = device.clock()
    gc.collect()  # what was left lying about before is not the subject's; what it leaves itself is, as in a training loop
    timing = timed(bench, wishes.budget / 8)
    rounds, once = len(timing.forward), max(timing.both)
    ready()
    enough = clock() + wishes.budget
    if once <= wishes.budget / 4:
        wishes.say("watching every operation")
    recordings = [record(bench, max(wishes.budget, _OBSERVING * once))]
    while len(recordings) < _REPEATS and len(recordings[0].events) < _MANY_EVENTS and clock() + 3 * once < enough:
        timing.add(timed(bench, wishes.budget / 16, rounds, rounds))
        recordings.append(record(bench))
    return timing, recordings


def _profile(
    bench: Bench, timing: Timing, recordings: list[Recording], wishes: Wishes, trouble: list[Finding], notes: list[str]
) -> Profile:
    recording = recordings[0] if recordings else Recording()
    forward, backward = Spread.of(timing.forward), Spread.of(timing.backward)
    limits = machine()
    clocked: dict[Phase, attribution.Clocked] = {
        "forward": attribution.Clocked(min(timing.forward_work, default=0.0), forward.median),
        "backward": attribution.Clocked(min(timing.backward_work, default=0.0), backward.median),
    }
    fitted = attribution.fitted(recordings, clocked, limits) if recordings else attribution.Fitted([], [])
    spent = fitted.spent
    target = bench.target
    result = Profile(
        name=target.name,
        path=target.path,
        line=target.line,
        inputs=bench.arguments.shapes(),
        forward=forward,
        backward=backward,
        both=Spread.of(timing.both),
        rounds=len(timing.forward),
        best_s=min(timing.work, default=0.0),
        disturbed=timing.disturbed,
        saved_bytes=recording.saved_bytes,
        peak_bytes=recording.peak_bytes,
        ops=attribution.by_op(recording.events, spent),
        lines=attribution.by_line(recording.events, spent),
        saved=list(recording.saved),
        machine=limits,
        notes=notes,
        recording=recording,
        spent=spent,
        kernels=fitted.kernels,
        observed=attribution.quickest(recordings) if recordings else [],
        bench=bench,
        inputs_from=bench.inputs_from,
    )
    if recordings and timing.forward:
        if wishes.on_measured is not None:
            result.findings = fold([*trouble, *_findings(result, wishes)])
            wishes.on_measured(result)
        _deepen(result, bench, wishes)
    result.findings = fold([*trouble, *_findings(result, wishes)]) if recordings else trouble
    result.notes += catalog.notes(_rules(wishes))
    return result


def _deepen(result: Profile, bench: Bench, wishes: Wishes) -> None:
    """What takes more runs: other sizes, and other ways to compute the same."""
    from gradsmith.profiling.remedies import against_autograd, tried

    slow = min(result.both.low, result.total_s) > wishes.budget / 8
    if wishes.growth and not slow:
        wishes.say("running at other sizes")
        result.growth = grow(bench, wishes.budget, result.recording)
        result.notes += [g.stopped for g in result.growth if g.stopped]
    elif wishes.growth:
        result.notes.append(f"one run takes {result.total_s:.2g} s; other sizes were left out (raise the budget)")
    if not slow and not bench.forward_only:
        result.plain = against_autograd(bench, wishes.reference, wishes.budget / 12)
    if wishes.try_remedies and not bench.forward_only:
        result.remedies = tried(bench, wishes.reference, wishes.budget / 2, result.forward_ops, wishes.say)


def _findings(result: Profile, wishes: Wishes) -> list[Finding]:
    found: list[Finding] = []
    for rule in _rules(wishes):
        if rule.profile is None:
            continue
        try:
            found += [rule.stamped(finding, "profile") for finding in rule.profile(result)]
        except Exception as error:  # a rule met a profile it did not foresee; what was measured is true all the same
            note = f"the rule {rule.name} stopped: {one_line(error)}"
            result.notes += [note] if note not in result.notes else []
    rank = {"error": 0, "warning": 1, "info": 2}
    ranked = sorted(found, key=lambda f: (rank[f.severity or "info"], -f.evidence.get("share", 0.0)))
    return absorbed(ranked)


def _rules(wishes: Wishes) -> list[catalog.Rule]:
    return catalog.chosen(wishes.select, wishes.ignore, preview=wishes.preview)


def _raised(bench: Bench, phase: str, error: Exception) -> Finding:
    target = bench.target
    text = f"{target.name}.{phase} raises {one_line(error)}."
    finding = Finding(text, function=target.name, path=target.path, line=target.line, column=0)
    return catalog.for_event(phase).stamped(finding, "profile")

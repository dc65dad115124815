"""False alarms on torch's own operators: every one of op_db that supports autograd in float64 is right by definition.

Called by `python benchmarks/verify.py operators`. The operators are shared out to as many processes as there are cores.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import re
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from keeping import NotFinished, kept

import gradsmith as gs

EXCEPTIONS = {
    "as_strided": "reads memory by its layout: another layout is another result, by definition",
    "as_strided_copy": "reads memory by its layout: another layout is another result, by definition",
    "as_strided_partial_views": "reads memory by its layout: another layout is another result, by definition",
    "as_strided_scatter": "writes memory by its layout",
    "native_group_norm": "torch gives no gradient through the mean and rstd outputs, though they depend on x",
    "nn_functional_max_unpool1d": "repeated indices: torch sends the gradient to every copy, only the last was used",
    "nn_functional_max_unpool2d": "repeated indices: torch sends the gradient to every copy, only the last was used",
    "nn_functional_max_unpool2d_grad": "repeated indices: torch sends the gradient to every copy, only the last was used",
    "nn_functional_max_unpool1d_grad": "repeated indices: torch sends the gradient to every copy, only the last was used",
    "nn_functional_max_unpool3d": "repeated indices: torch sends the gradient to every copy, only the last was used",
    "nn_functional_max_unpool3d_grad": "torch's own backward calls view on the indices, and raises where they are strided",
    "nn_functional_alpha_dropout": "op_db seeds it inside: another layout of x is another draw",
    "nn_functional_dropout": "op_db seeds it inside: another layout of x is another draw",
    "normal": "torch defines the gradient of a random draw as zero",
    "normal_number_mean": "torch defines the gradient of a random draw as zero",
    "sparse_sampled_addmm": "sparse input, refused in words",
    "sparse_mm_reduce": "sparse input, refused in words",
}

# At level standard: the gradient, and what exploring finds. Compiling every operator would take hours, and says nothing new.
EXPLORING = ("wrong-gradient", "value-dependent", "option-dependent", "shape-dependent", "repeated-index", "assumes")


@dataclass
class Tally:
    """What came of the checks of some operators."""

    operators: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    alarms: list[str] = field(default_factory=list)
    excused: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    crashed: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.operators += other.operators
        self.verdicts += other.verdicts
        self.alarms += other.alarms
        self.excused += other.excused
        self.undecided += other.undecided
        self.crashed += other.crashed


@dataclass(frozen=True)
class Share:
    """Every `step`-th operator from `start` on, at most `most` of them."""

    start: int
    step: int
    samples: int
    seeds: int
    level: str
    most: int | None = None


def operators(samples: int, seeds: int, every: int = 1, level: str = "quick") -> bool:
    """Check them all and print the table; True when there was no false alarm."""
    processes = int(os.environ.get("BENCH_JOBS", len(os.sched_getaffinity(0))))
    pieces = 64
    shares = [Share(every * i, every * pieces, samples, seeds, level) for i in range(pieces)]
    tally = Tally()
    with ThreadPoolExecutor(processes) as threads:
        waiting = [threads.submit(kept, f"operators {share}", functools.partial(_apart, share)) for share in shares]
        for number, part in enumerate(as_completed(waiting), 1):
            try:
                tally.add(part.result())
            except NotFinished:
                sys.exit("not finished: run it again, and it goes on")
            print(f"  {number} of {pieces} shares, {sum(tally.verdicts.values())} checks", file=sys.stderr, flush=True)
    checks = sum(tally.verdicts.values())
    print(
        f"\n## torch's own operators: {tally.operators} of op_db, {samples} samples x {seeds} seeds, level {level}, {checks} checks"
    )
    told = ", ".join(f"{word} {tally.verdicts[word]}" for word in ("verified", "unverified", "refuted"))
    print(f"{told}; false alarms: {len(tally.alarms)}")
    for alarm in sorted(tally.alarms):
        print("  ALARM", alarm[:220])
    for name in sorted(tally.crashed):
        print("  CRASHED", name)
    print("exceptions, one by one:")
    for name in sorted(tally.excused):
        print(f"  {name} ({tally.excused[name]}): {EXCEPTIONS[name]}")
    print("unverified, by reason:", dict(tally.undecided.most_common(8)))
    return not tally.alarms and not tally.crashed


def _apart(share: Share) -> Tally:
    """The share in a process of its own. If that dies, its operators are checked one by one, and the one that killed it is named."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(_check, share).result()
        except BrokenProcessPool:
            if share.most == 1:
                return Tally(operators=1, crashed=[_chosen(share)[0].formatted_name])
    tally = Tally()
    for number in range(len(_chosen(share))):
        tally.add(_apart(replace(share, start=share.start + number * share.step, most=1)))
    return tally


def _chosen(share: Share) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    able = [o for o in op_db if o.supports_autograd and torch.float64 in o.dtypes]
    return able[share.start :: share.step][: share.most]


def _check(share: Share) -> Tally:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    tally = Tally()
    for op in _chosen(share):
        tally.operators += 1
        inputs = op.sample_inputs("cpu", torch.float64, requires_grad=True)
        for number, sample in enumerate(itertools.islice(inputs, share.samples)):
            for seed in range(share.seeds):
                _one(op, sample, f"{op.formatted_name} sample {number} seed {seed}", seed, tally, share.level)
    return tally


def _one(op: Any, sample: Any, name: str, seed: int, tally: Tally, level: str) -> None:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return sample.output_process_fn_grad(op.gradcheck_wrapper(op.op, x, *args, **kwargs))

    report = gs.check(
        call,
        sample.input,
        *sample.args,
        kwargs=sample.kwargs,
        level=level,
        seed=seed,
        select=EXPLORING if level != "quick" else (),
    )
    subject = report.subjects[0]
    tally.verdicts[subject.verdict] += 1
    if report.errors and op.formatted_name in EXCEPTIONS:
        tally.excused[op.formatted_name] += 1
    elif report.errors:
        tally.alarms.append(f"{name}: {report.errors[0].rule}: {report.errors[0].message}")
    elif subject.verdict == "unverified":
        tally.undecided[re.sub(r"'[^']*'", "'...'", subject.reason)[:120]] += 1

"""False alarms on torch's own operators: every one of op_db that supports autograd in float64 is right by definition.

Called by `python benchmarks/verify.py operators`. The operators are shared out to as many processes as there are cores.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

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

    def add(self, other: Tally) -> None:
        self.operators += other.operators
        self.verdicts += other.verdicts
        self.alarms += other.alarms
        self.excused += other.excused
        self.undecided += other.undecided


@dataclass(frozen=True)
class Share:
    """Every `step`-th operator from `start` on."""

    start: int
    step: int
    samples: int
    seeds: int
    level: str


def operators(samples: int, seeds: int, every: int = 1, level: str = "quick") -> bool:
    """Check them all and print the table; True when there was no false alarm."""
    processes = len(os.sched_getaffinity(0))
    pieces = 16 * processes
    shares = [Share(every * i, every * pieces, samples, seeds, level) for i in range(pieces)]
    tally = Tally()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for number, part in enumerate(pool.imap_unordered(_check, shares), 1):
            tally.add(part)
            print(f"  {number} of {pieces} shares, {sum(tally.verdicts.values())} checks", file=sys.stderr, flush=True)
    checks = sum(tally.verdicts.values())
    print(
        f"\n## torch's own operators: {tally.operators} of op_db, {samples} samples x {seeds} seeds, level {level}, {checks} checks"
    )
    told = ", ".join(f"{word} {tally.verdicts[word]}" for word in ("verified", "unverified", "refuted"))
    print(f"{told}; false alarms: {len(tally.alarms)}")
    for alarm in sorted(tally.alarms):
        print("  ALARM", alarm[:220])
    print("exceptions, one by one:")
    for name in sorted(tally.excused):
        print(f"  {name} ({tally.excused[name]}): {EXCEPTIONS[name]}")
    print("unverified, by reason:", dict(tally.undecided.most_common(8)))
    return not tally.alarms


def _check(share: Share) -> Tally:
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    tally = Tally()
    for op in [o for o in op_db if o.supports_autograd and torch.float64 in o.dtypes][share.start :: share.step]:
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

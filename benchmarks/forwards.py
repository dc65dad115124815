"""How often one standard check runs the subject, probe by probe.

    python benchmarks/forwards.py [--callers]

The subject is tanh(x @ w) with its right gradient, x of shape (4, 3), w of shape (3, 5), in process. Nothing is wrong with
it, so every probe runs to its end. A forward belongs to the rule whose probe asked first: what probes share (the judgement
of the gradient, the baseline) counts for the one that needed it before the others. `--callers` also says which functions of
gradsmith asked. `tests/test_forwards.py` keeps the total below its limit.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import gradsmith as gs

LIMIT = 250
HERE = Path(gs.__file__).parent


class Forwards:
    """Counts the calls of a forward and of a backward, by probe and by the functions that led there."""

    def __init__(self) -> None:
        self.probes: Counter[str] = Counter()
        self.callers: Counter[tuple[str, ...]] = Counter()
        self.backwards = 0

    @property
    def total(self) -> int:
        return sum(self.probes.values())

    def note(self) -> None:
        frames = list(_own_frames(sys._getframe(1)))
        rules = [Path(f.f_code.co_filename).stem for f in frames if "rules" in Path(f.f_code.co_filename).parts]
        self.probes[rules[-1].replace("_", "-") if rules else "(no probe)"] += 1
        self.callers[tuple(f"{Path(f.f_code.co_filename).stem}.{f.f_code.co_name}" for f in frames[:7])] += 1


def _own_frames(frame: FrameType | None) -> Any:
    """The frames of gradsmith itself, innermost first."""
    while frame is not None:
        if HERE in Path(frame.f_code.co_filename).parents:
            yield frame
        frame = frame.f_back


def subject(counted: Forwards) -> type[torch.autograd.Function]:
    class TanhMatmul(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            counted.note()
            y = torch.tanh(x @ w)
            ctx.save_for_backward(x, w, y)
            return y

        @staticmethod
        def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
            counted.backwards += 1
            x, w, y = ctx.saved_tensors
            inner = grad_output * (1 - y * y)
            return inner @ w.T, x.T @ inner

    return TanhMatmul


def count() -> tuple[Forwards, gs.Report]:
    """One standard check."""
    counted = Forwards()
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(s, dtype=torch.float64, generator=generator, requires_grad=True) for s in ((4, 3), (3, 5)))
    return counted, gs.check(subject(counted), x, w)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", action="store_true")
    arguments = parser.parse_args()
    counted, report = count()
    for probe, times in counted.probes.most_common():
        print(f"{times:5}  {probe}")
    if arguments.callers:
        for callers, times in counted.callers.most_common():
            print(f"{times:5}  {' < '.join(callers)}")
    print(f"{counted.total} forwards (at most {LIMIT}), {counted.backwards} backwards, {report.subjects[0].verdict}")
    raise SystemExit(counted.total > LIMIT)


if __name__ == "__main__":
    main()

"""How often one standard check runs the subject, probe by probe.

    python benchmarks/forwards.py [--callers]

The subject is tanh(x @ w) with its right gradient, x of shape (4, 3), w of shape (3, 5), in process. Nothing is wrong with
it, so every probe runs to its end. A forward belongs to the rule whose probe asked first: what probes share (the judgement
of the gradient, the baseline) counts for the one that needed it before the others. `--callers` also says which functions of
gradsmith asked. `tests/test_forwards.py` keeps the total below its limit.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from forward_counter import Forwards

import gradsmith as gs

LIMIT = 250


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

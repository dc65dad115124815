"""How far equal calls with equal seeds lie apart."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.values import widened


@dataclass(frozen=True)
class CallDifference:
    """The largest difference between equal calls, as a share of the size of what differs."""

    what: str
    relative: float


def spread(lab: Lab, runs: int = 3) -> CallDifference:
    """Run forward and backward several times in the user's own precision and compare every bit."""
    first: list[tuple[str, Tensor]] | None = None
    worst = CallDifference("nothing", 0.0)
    v: dict[int, Tensor] | None = None
    for _ in range(runs):
        run = lab.run()
        v = v or run.normal(lab.generator(23))
        grads = run.gradients(v)
        results = [
            ("the output" if n == "output" else n, widened(o.detach()).clone())
            for n, o in zip(run.output_names, run.outputs)
        ]
        for leaf in run.arguments.differentiable:
            grad = grads[leaf.position]
            if grad is not None:
                results.append((f"the gradient of '{leaf.name}'", grad))
        if first is None:
            first = results
            continue
        for (name, a), (_, b) in zip(first, results):
            off = _relative(a, b)
            worst = CallDifference(name, off) if off > worst.relative else worst
    return worst


def _relative(a: Tensor, b: Tensor) -> float:
    if a.shape != b.shape or not a.numel() or not a.is_floating_point():
        return 0.0
    size = float(a.abs().nan_to_num(0, 0, 0).max())
    off = float((a - b).abs().nan_to_num(0, 0, 0).max())
    return off / size if size else off

"""Can a write in place be what makes a number wrong? Undo the write, and see whether the number changes."""

from __future__ import annotations

from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import Pair
from gradsmith.lab.measure.values import unchanged


def ruled_out(lab: Lab, pair: Pair) -> tuple[str, ...]:
    """Where writes may happen (forward, backward) and are not behind the wrong number of this pair.

    Every number is taken from the first backward of a fresh graph. What an earlier backward wrote can only matter if it
    outlives its graph, and then two fresh graphs differ.
    """
    v = {pair.output: pair.v}
    found = ["backward"] if _alike(lab, lab.gradients(v), lab.gradients(v)) else []
    return (*found, *(["forward"] if _wrong_without_the_write(lab, pair) else []))


def _wrong_without_the_write(lab: Lab, pair: Pair) -> bool:
    """Whether backward says the same after every input got back the values that it had before forward."""
    v = {pair.output: pair.v}
    run = lab.precise_run()
    for leaf in run.arguments.leaves:
        passed = run.passed[leaf.position]
        if not unchanged(leaf.tensor, passed):
            if leaf.tensor.shape != passed.shape:
                return False
            passed.data.copy_(leaf.tensor.detach())  # past the version counter, which would raise
    return _alike(lab, lab.gradients(v), run.gradients(v))


def _alike(lab: Lab, a: dict[int, Tensor | None], b: dict[int, Tensor | None]) -> bool:
    return all(lab.close(a[position], b[position]) for position in a)

"""Does the graph of a Function go away when its output does?"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.process.freezing import frozen
from gradsmith.lab.run import forward

_TRIALS = 4


@dataclass(frozen=True)
class Survivors:
    """How many graphs outlived their outputs, before and after a collection; none where only some did.

    A graph that keeps itself alive does so at every run. Where only the last ones are left, somebody keeps the last outputs: a
    buffer that each call writes its result into, a cache.
    """

    trials: int
    before_collection: int
    after_collection: int


@once
def survivors(lab: Lab) -> Survivors:
    """Run forward unobserved a few times (an observer would hold references) and count what stays."""
    if lab.target.kind != "function":
        return Survivors(0, 0, 0)
    with frozen():  # a collection of all that existed before would take 100 ms
        nodes = []
        for _ in range(_TRIALS):
            run = forward(lab.target, lab.arguments, seed=lab.settings.seed)
            nodes += [weakref.ref(o.grad_fn) for o in run.outputs if o.grad_fn is not None][:1]
            del run
        before = sum(node() is not None for node in nodes)
        gc.collect()
        after = sum(node() is not None for node in nodes)
    return Survivors(_TRIALS, *(alive if alive == len(nodes) else 0 for alive in (before, after)))

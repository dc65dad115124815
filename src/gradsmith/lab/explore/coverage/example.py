"""What the example itself covers: with all of its gradients asked for, and with some of them."""

from __future__ import annotations

from itertools import islice

from gradsmith.lab.explore.coverage.point import Coverage
from gradsmith.lab.explore.coverage.watch import watched_run
from gradsmith.lab.explore.defaults import with_defaults
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.subsets import proper_subsets
from gradsmith.lab.once import once

_SUBSETS = 6


@once
def coverage_of(lab: Lab) -> Coverage:
    """Begun with the example; whoever explores adds to it."""
    found = Coverage()
    base = with_defaults(*lab.precise)
    found.add(watched_run(lab, base), judged=True)
    for subset in islice(proper_subsets(base.differentiable), _SUBSETS):
        if not any(point.sort == "test" for point in found.open):
            break
        found.add(watched_run(lab, base.only(subset), operations=False), judged=True)
    return found

"""What the example itself covers: with all of its gradients asked for, with some of them, with none, and in other precisions."""

from __future__ import annotations

from itertools import islice

import torch

from gradsmith.lab.explore.coverage.point import Coverage
from gradsmith.lab.explore.coverage.watch import forward_alone, in_precision, watched_run
from gradsmith.lab.explore.defaults import with_defaults
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.subsets import proper_subsets
from gradsmith.lab.once import once
from gradsmith.lab.subject.foreign import runs_kernels

_SUBSETS = 6
_PRECISIONS = (torch.float32, torch.bfloat16, torch.float16)


@once
def coverage_of(lab: Lab) -> Coverage:
    """Begun with the example; whoever explores adds to it."""
    found = Coverage()
    base = with_defaults(*lab.precise)
    found.add(watched_run(lab, base), judged=True)
    for subset in islice(proper_subsets(base.differentiable), _SUBSETS):
        if not _open_tests(found):
            break
        found.add(watched_run(lab, base.only(subset), operations=False), judged=True)
    if _open_tests(found):
        found.add(forward_alone(lab), judged=False)
    for dtype in _PRECISIONS:
        if _open_tests(found) and lab.level != "quick" and not runs_kernels(lab.target):
            found.add(in_precision(lab, dtype), judged=False)
    return found


def _open_tests(found: Coverage) -> bool:
    return any(point.sort == "test" for point in found.open)

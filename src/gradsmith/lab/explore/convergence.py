"""Had the loops of forward come to rest when they ended? A gradient of the limit is right only where the limit is reached."""

from __future__ import annotations

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.loops import AT_REST, Ending, Place, endings
from gradsmith.lab.once import once
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

_MUCH = 100.0


def stops_too_early(lab: Lab, target: Target, arguments: Arguments) -> bool:
    """Whether a loop that comes to rest on the example does not on these arguments.

    A loop that is not at rest on the example either (over time, over layers) is no excuse.
    """
    before = _on_example(lab)
    if not any(e.change <= AT_REST for e in before.values()):
        return False
    there = endings(target, arguments, lab.settings.seed)
    return any(_left_behind(before[place], ending) for place, ending in there.items() if place in before)


def _left_behind(before: Ending, there: Ending) -> bool:
    if before.change > AT_REST or there.change <= _MUCH * before.change:
        return False
    return there.change > AT_REST or (there.exhausted and not before.exhausted)


@once
def _on_example(lab: Lab) -> dict[Place, Ending]:
    return endings(*lab.precise, lab.settings.seed)

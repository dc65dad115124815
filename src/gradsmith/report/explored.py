"""Where else a gradient is right, what it assumes, and what was not tried: one short sentence each."""

from __future__ import annotations

from gradsmith.findings import Subject, named_inputs, plural

# Which counts of `Subject.explored` are told, in this order: the noun, and what follows it.
_COUNTED = {
    "branches": ("other branch", "", "es"),
    "sizes": ("change", " of size", "s"),
    "options": ("change", " of an option", "s"),
    "values": ("change", " of values", "s"),
    "ids": ("change", " of indices", "s"),
    "structures": ("broken structure", "", "s"),
}
_MOST_REASONS = 2
_MOST_STEPS = 2


def right_where(subject: Subject) -> str:
    """`right at your inputs and 27 other examples, with 11 changes of size and 3 changes of values; assumes: ...`.

    One example may take several steps, and some steps are not counted, so the numbers do not add up to that of the examples.
    Where no other example was judged, it says so: somebody who reads "verified" takes it for all inputs.
    """
    told = []
    if subject.verdict == "verified" and subject.explored.get("examples"):
        counts = [(subject.explored.get(name, 0), *words) for name, words in _COUNTED.items()]
        steps = [f"{n} {noun}{ending if n > 1 else ''}{rest}" for n, noun, rest, ending in counts if n]
        words = " and ".join(filter(None, (", ".join(steps[:-1]), *steps[-1:])))
        others = plural(subject.explored["examples"], "other example")
        where = f"{named_inputs(subject.inputs_from)} and {others}"
        told.append(f"right at {where}, with {words}" if words else f"right at {where}")
    elif subject.verdict == "verified" and (level := subject.measured.get("level")):
        why = "level quick tries no others" if level == "quick" else "no other example could be judged"
        told.append(f"right at {named_inputs(subject.inputs_from)} only: {why}")
    if subject.assumptions:
        told.append(f"assumes: {', '.join(subject.assumptions)}")
    return "; ".join(told)


def below(subject: Subject) -> list[str]:
    """Lines under the verdict: what was tried first because it had failed before, and what was not tried."""
    first = [f"       Tried first, because it failed in an earlier run: {one}" for one in _replayed(subject)]
    return [*first, *_not_tried(subject)]


def _replayed(subject: Subject) -> list[str]:
    found = list(subject.explored.get("earlier failures", ()))
    more = len(found) - _MOST_STEPS
    return [*found[:_MOST_STEPS], f"{plural(more, 'more example')}"] if more > 0 else found


def _not_tried(subject: Subject) -> list[str]:
    """`Not tried: 14 steps, such as with 'x' all zero (the budget of 64 examples was spent)`; none within the budget."""
    if not subject.explored.get("budget spent"):
        return []
    reasons: dict[str, list[str]] = {}
    for line in subject.explored.get("left out", ()):
        step, _, reason = line.rpartition(": ")
        reasons.setdefault(reason, []).append(step)
    most = sorted(reasons.items(), key=lambda pair: -len(pair[1]))[:_MOST_REASONS]
    told = [f"{_several(steps)} ({reason})" for reason, steps in most]
    return [f"       Not tried: {'; '.join(told)}"] if told else []


def _several(steps: list[str]) -> str:
    if len(steps) <= _MOST_STEPS:
        return ", ".join(steps)
    return f"{len(steps)} steps, such as {steps[0]}"

"""What was explored around an example, and what the gradient assumes: for the subject of a report.

Only what a probe has asked for is told: nothing is run for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradsmith.checking.discoveries import assumed, sentence_of
from gradsmith.lab.explore import explorer
from gradsmith.lab.explore.coverage.example import coverage_of
from gradsmith.lab.explore.coverage.point import told as told_points
from gradsmith.lab.explore.explorer import Exploration
from gradsmith.lab.explore.move import told
from gradsmith.lab.explore.trial import Trial
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import known

# The names under which a report counts the steps of each kind.
_COUNTED: dict[str, str] = {
    "values": "values",
    "branch": "branches",
    "clamp": "branches",
    "size": "sizes",
    "named option": "options",
    "invented option": "options",
    "gradient control": "options",
    "ids": "ids",
    "structure": "structures",
    "requires grad": "requires grad",
    "state": "states",
}


def explored(lab: Lab) -> dict[str, Any]:
    """What exploring reached, as JSON; empty where no probe asked for it, or there was nothing to explore."""
    found = _asked(lab)
    if found is None or not found.judged:
        return {}
    steps: dict[str, set[str]] = {}
    for kind, words in found.reached.items():
        steps.setdefault(_COUNTED.get(kind, kind), set()).update(words)
    return _told(
        {
            "examples": len(found.right),
            "steps": {name: sorted(words) for name, words in sorted(steps.items())},
            "rejected": list(dict.fromkeys(found.rejected)),
            "left out": list(dict.fromkeys(found.left_out)),
            "budget spent": found.spent,
            "earlier failures": [f"{told(trial.moves)}: {_became(trial)}" for trial in found.replayed],
            "seed": found.seed,
        }
    )


def covered(lab: Lab, *, asked: bool) -> dict[str, Any]:
    """Which lines and sides were reached; empty where nothing was explored and nobody asked for it."""
    found = coverage_of(lab) if asked else next(iter(known(lab, coverage_of)), None)
    return told_points(found.to_json()) if found is not None else {}


def covered_together(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The coverage of several examples of one subject: what one of them reached is reached."""
    rows = [row for one in several for row in one.get("points", ())]
    return told_points(rows) if rows else {}


def assumptions(lab: Lab) -> tuple[str, ...]:
    """One sentence for each assumption: "'matrix' is symmetric"."""
    return tuple(sentence_of(d) for d in assumed(lab)) if _asked(lab) is not None else ()


def merged(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was explored around several examples of one subject: a step that two of them reached counts once.

    >>> one = {"examples": 2, "sizes": 1, "steps": {"sizes": ["with 3 instead of 4 in dim 0 of 'x'"]}, "seed": 0}
    >>> merged([one, one])["examples"], merged([one, one])["sizes"]
    (4, 1)
    """
    each = [one for one in several if one]
    if not each:
        return {}
    names = dict.fromkeys(name for one in each for name in one["steps"])
    return _told(
        {
            "examples": sum(one["examples"] for one in each),
            "steps": {name: sorted(set(_all(one["steps"].get(name, ()) for one in each))) for name in names},
            "rejected": _all(one.get("rejected", ()) for one in each),
            "left out": _all(one.get("left out", ()) for one in each),
            "budget spent": any(one.get("budget spent", False) for one in each),
            "earlier failures": _all(one.get("earlier failures", ()) for one in each),
            "seed": each[0]["seed"],
        }
    )


def _asked(lab: Lab) -> Exploration | None:
    return next(iter(known(lab, explorer.explored)), None)


def _became(trial: Trial) -> str:
    if trial.bad:
        return "it still fails"
    return "it is right now" if trial.status == "right" else "it cannot be judged any more"


def _told(found: dict[str, Any]) -> dict[str, Any]:
    """With the number of steps of each kind."""
    counts = {name: len(words) for name, words in found["steps"].items()}
    return {"examples": found["examples"], **counts, **found}


def _all(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(text for one in lists for text in one))

"""Which sides of its branches a run took, and whether another example took a new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.explore.move import Kind
from gradsmith.lab.explore.tape import Operation, OperationTape, Phase, Seen
from gradsmith.lab.explore.trial import Trial
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.source import knowledge as know

_FLAT = 1e-6  # a slope this small, beside what backward says, is none
_FIXED = {"relu6": (0.0, 6.0), "hardtanh": (-1.0, 1.0), "hardsigmoid": (-3.0, 3.0)}
_PHASES: tuple[Phase, ...] = ("forward", "backward")


@dataclass(frozen=True)
class Side:
    """One side of one operation that chooses: where it stands, and which way it went."""

    phase: Phase
    name: str
    line: int | None
    side: str


def kind_of_values(lab: Lab, base: Arguments, trial: Trial) -> tuple[Kind, str]:
    """What other values did: reached a new side of a branch, the flat side of a clamp, or neither."""
    if trial.arguments is None:
        return "values", ""
    target = lab.precise[0]
    before = recorded(target, base, lab.settings.seed, backward=True)
    after = recorded(target, trial.arguments, lab.settings.seed, backward=True)
    new = set(sides(after)) - set(sides(before))
    if not new:
        return "values", ""
    clamped = [s for s in new if s.name in know.CLAMPS or s.name in _FIXED]
    if clamped and _guarded(trial, clamped):
        return "clamp", _bound(trial, after, clamped)
    return "branch", ""


def _guarded(trial: Trial, clamped: list[Side]) -> bool:
    """Whether the slope on the flat side is finite and forward's is none, or only backward clamps."""
    if trial.status == "non-finite":
        return any(s.phase == "forward" for s in clamped)
    if trial.mismatch is None:
        return False
    flat = abs(trial.mismatch.true) <= _FLAT * abs(trial.mismatch.claimed)
    only_backward = all(s.phase == "backward" for s in clamped)
    return flat or only_backward


def _bound(trial: Trial, tape: OperationTape, clamped: list[Side]) -> str:
    """The bound in the reader's words: "'x' <= 15"."""
    side = sorted(clamped, key=lambda s: s.phase == "backward")[0]
    for op in tape.aten({side.name}, side.phase):
        if op.line != side.line or not op.args or not isinstance(op.args[0], Seen):
            continue
        low, high = _bounds(op)
        number = high if side.side == "above" else low
        sign = "<=" if side.side == "above" else ">="
        if number is None:
            continue
        name = _leaf_like(trial, op.args[0])
        what = f"'{name}'" if name else f"what line {side.line} clamps" if side.line else "what is clamped"
        return f"{what} {sign} {number:g}"
    return "nothing is clamped"


def _leaf_like(trial: Trial, seen: Seen) -> str:
    for leaf in trial.arguments.leaves if trial.arguments is not None else ():
        mine = leaf.tensor.detach()
        if seen.values is not None and seen.values.shape == mine.shape and torch.equal(seen.values.to(mine), mine):
            return leaf.name
    return ""


def sides(tape: OperationTape) -> Iterator[Side]:
    """Every side that an operation took, for some element; and each line that ran an operation at all."""
    for phase in _PHASES:
        for op in tape.aten(None, phase):
            if op.line is not None:
                yield Side(phase, "line", op.line, "ran")
            for side in _taken(op):
                yield Side(phase, op.name, op.line, side)


def _taken(op: Operation) -> Iterator[str]:
    values = op.args[0].values if op.args and isinstance(op.args[0], Seen) else None
    if op.name in know.COMPARISONS:
        result = op.results[0].values if op.results else None
        if result is not None and result.numel():
            yield from ("true",) if bool(result.any()) else ()
            yield from ("false",) if not bool(result.all()) else ()
    elif values is None or not values.numel() or values.is_complex() or values.dtype == torch.bool:
        return
    elif op.name in know.CLAMPS or op.name in _FIXED:
        low, high = _bounds(op)
        if low is not None and bool((values < low).any()):
            yield "below"
        if high is not None and bool((values > high).any()):
            yield "above"
    elif op.name in know.BY_SIGN:
        yield from ("negative",) if bool((values < 0).any()) else ()
        yield from ("positive",) if bool((values > 0).any()) else ()


def _bounds(op: Operation) -> tuple[float | None, float | None]:
    if op.name in _FIXED and len(op.args) < 2:
        return _FIXED[op.name]
    given = [_number(a) for a in op.args[1:3]]
    if op.name == "clamp_max":
        return None, given[0] if given else _number(op.kwargs.get("max"))
    low = given[0] if given else _number(op.kwargs.get("min"))
    high = given[1] if len(given) > 1 else _number(op.kwargs.get("max"))
    return low, high


def _number(value: Any) -> float | None:
    if isinstance(value, Seen):
        values: Tensor | None = value.values
        value = values.item() if values is not None and values.numel() == 1 else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

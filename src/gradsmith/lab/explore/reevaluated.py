"""Which function of forward backward calls again at moved arguments, and by how much: the step of somebody's differences.

One run under `sys.setprofile`. Names play no part, so helpers, methods and libraries in between do not matter. What is
called in C, or in another process, is not seen.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from gradsmith.lab.explore.moves.option_values import source_of
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.run import Allowance
from gradsmith.lab.subject.foreign import leaves_torch
from gradsmith.source.model import FunctionModel

_KEPT = 16  # calls of one function in forward: a solver makes thousands
_MOST = 1 << 16  # elements of an argument that are kept
_SAME = 1e-6  # of the step: what adding it to numbers of different sizes rounds off

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Reevaluated:
    """A function, the longest step by which its arguments were moved, whether to both sides, and how often.

    `certain`: one element after the other, or the same way up and down. What else calls f(x + 1), or f(2 * x), may mean it.
    `line` is the one of backward which led to it.
    """

    function: str
    step: float
    central: bool
    calls: int
    certain: bool
    line: int | None


class _Move(NamedTuple):
    """One call in backward: how far from forward's, to which side, whether of one element among others, from which line."""

    step: float
    side: int
    single: bool
    line: int | None


@dataclass
class _Watch:
    """The arguments of Python functions in forward, and those calls in backward at which they were moved."""

    own: frozenset[tuple[str, str]]  # file and name of forward and backward
    before: dict[CodeType, list[list[Numbers]]] = field(default_factory=dict)
    moved: dict[CodeType, list[_Move]] = field(default_factory=dict)
    backward: bool = False

    def __call__(self, frame: FrameType, event: str, given: Any) -> None:
        code = frame.f_code
        if (
            event != "call"
            or (code.co_filename, code.co_name) in self.own
            or code.co_argcount + code.co_kwonlyargcount == 0
        ):
            return
        if not self.backward:
            if len(self.before.setdefault(code, [])) < _KEPT:
                self.before[code].append(_numbers(frame, code))
        elif self.before.get(code):
            self._compare(frame, code)

    def _compare(self, frame: FrameType, code: CodeType) -> None:
        now = _numbers(frame, code)
        steps = [_step(then, now) for then in self.before[code]]
        known = [step for step in steps if step is not None]
        nearest = min(known, key=lambda step: abs(step[0]), default=(0.0, False))
        if nearest[0]:  # else forward was there
            side = 1 if nearest[0] > 0 else -1
            self.moved.setdefault(code, []).append(_Move(abs(nearest[0]), side, nearest[1], self._line(frame)))

    def _line(self, frame: FrameType | None) -> int | None:
        while frame is not None:
            if (frame.f_code.co_filename, frame.f_code.co_name) in self.own:
                return frame.f_lineno
            frame = frame.f_back
        return None


@once
def reevaluated(lab: Lab) -> Reevaluated | None:
    """The outermost function of forward that backward calls at moved arguments; None where forward stays in torch."""
    if lab.target.kind not in ("function", "custom_op") or not leaves_torch(lab.target):
        return None
    source = source_of(lab.target)
    bodies = source.methods.values() if isinstance(source, FunctionModel) else ()
    watch = _Watch(frozenset((body.file.path, body.node.name) for body in bodies))
    theirs = sys.getprofile()
    try:
        with Allowance(4, reserved=True):
            sys.setprofile(watch)
            run = lab.precise_run()
            sys.setprofile(theirs)
            v = run.normal(lab.generator(5))
            watch.backward = True
            sys.setprofile(watch)
            run.gradients(v)
    except Exception:  # user code that raises is told by others
        return None
    finally:
        sys.setprofile(theirs)
    for code in watch.before:  # in the order of their first call: what is called inside comes later
        if code in watch.moved:
            calls = watch.moved[code]
            step = max(call.step for call in calls)
            central = len({call.side for call in calls}) == 2
            certain = central or any(call.single for call in calls)
            name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
            return Reevaluated(name, step, central, len(calls), certain, calls[0].line)
    return None


def _numbers(frame: FrameType, code: CodeType) -> list[Numbers]:
    """The arguments that are made of floats, as copies."""
    found = []
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        value = frame.f_locals.get(name)
        if type(value) is torch.Tensor and value.is_floating_point() and value.device.type == "cpu":
            value = value.detach().numpy() if value.dtype in (torch.float32, torch.float64) else None
        if isinstance(value, float):
            value = np.array(value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and 0 < value.size <= _MOST:
            found.append(value.astype(np.float64))  # a copy: it may be moved in place
    return found


def _step(then: list[Numbers], now: list[Numbers]) -> tuple[float, bool] | None:
    """How far all arguments together were moved, and whether one element among others was; None for what is no step.

    Of several elements one was moved, or all by the same length, or all by the same share.
    """
    if not now or [a.shape for a in then] != [a.shape for a in now]:
        return None
    old, new = (np.concatenate([a.ravel() for a in each]) for each in (then, now))
    off = new - old
    at = np.flatnonzero(off)
    if not at.size:
        return 0.0, False
    lengths = np.abs(off[at])
    if not np.isfinite(off).all():
        return None
    rounding = 4 * np.finfo(np.float64).eps * np.abs(new).max()
    same_length = np.ptp(lengths) <= _SAME * lengths.max() + rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = off[at] / old[at]
    same_share = bool(np.isfinite(shares).all()) and np.ptp(shares) <= _SAME * np.abs(shares).max()
    if not same_length and not same_share:
        return None
    return float(np.copysign(lengths.max(), off[at[0]])), at.size == 1 and old.size > 1

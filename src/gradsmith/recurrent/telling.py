"""One warning, once, when a step that could have been planned runs as a loop: nobody prints a plan they do not miss."""

from __future__ import annotations

import os
import sys
import warnings

import torch

from .fallback import Step
from .plan import Plan

_told: set[tuple[str, str]] = set()
_INSIDE = tuple(os.path.join(os.path.dirname(path), "") for path in (torch.__file__, os.path.dirname(__file__)))


def tell_of_loop(plan: Plan, step: Step, backend: str) -> None:
    """Warn that `step` runs as a loop, with the reason, once for each pair of them; not if the loop was asked for."""
    if plan.backend != "loop" or backend != "auto" or not plan.reasons:
        return
    name, reason = _name(step), _reason(plan)
    if (name, reason) in _told:
        return
    _told.add((name, reason))
    warnings.warn(
        f'{name} runs as a Python loop, which is slow, because {reason}. Pass backend="loop" if that is fine.',
        UserWarning,
        stacklevel=_caller(),
    )


def _name(step: Step) -> str:
    if isinstance(step, torch.nn.Module):
        return type(step).__name__
    return str(getattr(step, "__qualname__", type(step).__name__)).replace("<locals>.", "")


def _reason(plan: Plan) -> str:
    """What kept the first backend from being taken; the others usually fail for the same reason."""
    _, _, words = plan.reasons[0].partition(": ")
    return words.rstrip(".")


def _caller() -> int:
    """How many frames up the user's own line is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    return level

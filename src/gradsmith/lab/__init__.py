"""The lab: a Function and its inputs go in, observations come out. It knows nothing of rules.

Names load when they are first used: the process that only watches workers never imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradsmith.lab.lab import Lab
    from gradsmith.lab.measure.gradient import Judgement, Mismatch, Pair, Settings
    from gradsmith.lab.observe import BackwardCall, ForwardCall, Trace
    from gradsmith.lab.run import Run, forward
    from gradsmith.lab.subject.arguments import Arguments, Leaf
    from gradsmith.lab.subject.target import Target, resolve

_HOME = {
    "Arguments": "subject.arguments",
    "BackwardCall": "observe",
    "ForwardCall": "observe",
    "Judgement": "measure.gradient",
    "Lab": "lab",
    "Leaf": "subject.arguments",
    "Mismatch": "measure.gradient",
    "Pair": "measure.gradient",
    "Run": "run",
    "Settings": "measure.gradient",
    "Target": "subject.target",
    "Trace": "observe",
    "forward": "run",
    "resolve": "subject.target",
}

__all__ = [
    "Arguments",
    "BackwardCall",
    "ForwardCall",
    "Judgement",
    "Lab",
    "Leaf",
    "Mismatch",
    "Pair",
    "Run",
    "Settings",
    "Target",
    "Trace",
    "forward",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradsmith.lab' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gradsmith.lab.{_HOME[name]}"), name)

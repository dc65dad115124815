"""The lab: a Function and its inputs go in, observations come out. It knows nothing of rules.

Names load when they are first used: the process that only watches workers never imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradsmith.lab.arguments import Arguments, Leaf
    from gradsmith.lab.gradient import Judgement, Mismatch, Pair, Settings
    from gradsmith.lab.lab import Lab
    from gradsmith.lab.observe import BackwardCall, ForwardCall, Trace
    from gradsmith.lab.run import Run, forward
    from gradsmith.lab.target import Target, resolve

_HOME = {
    "Arguments": "arguments",
    "BackwardCall": "observe",
    "ForwardCall": "observe",
    "Judgement": "gradient",
    "Lab": "lab",
    "Leaf": "arguments",
    "Mismatch": "gradient",
    "Pair": "gradient",
    "Run": "run",
    "Settings": "gradient",
    "Target": "target",
    "Trace": "observe",
    "forward": "run",
    "resolve": "target",
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

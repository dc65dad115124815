"""The lab: a Function and its inputs go in, observations come out. It knows nothing of rules."""

from gradsmith.lab.arguments import Arguments, Leaf
from gradsmith.lab.gradient import Judgement, Mismatch, Pair, Settings
from gradsmith.lab.lab import Lab
from gradsmith.lab.observe import BackwardCall, ForwardCall, Trace
from gradsmith.lab.run import Run, forward
from gradsmith.lab.target import Target, resolve

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

"""Tensors that forward keeps for backward in one byte per number, to save memory: the digits this costs are meant to go."""

from __future__ import annotations

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments


def digits_saved(lab: Lab, arguments: Arguments | None = None) -> float:
    """The rounding error of a float8 type among the saved tensors, else 0: half precision may be an accident."""
    run = lab.precise_run(arguments)
    kept = {t.dtype for call in run.trace.forwards for t in call.saved if isinstance(t, Tensor)}
    return max((torch.finfo(d).eps for d in kept if d.is_floating_point and d.itemsize == 1), default=0.0)

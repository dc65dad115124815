"""Gradients that an input steers which forward does not read: shake-shake, feedback alignment.

No derivative of forward depends on such an input. Where the gradient is that of forward with this input in the place of another
one, its author gave it to backward for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.measure.gradient import Judgement, Settings, judge
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments

_MOST = 12  # pairs of inputs that are tried


def steered(judgement: Judgement, settings: Settings) -> tuple[str, str] | None:
    """(the input that backward alone reads, the one in whose place it stands), where nothing else is wrong."""
    target, arguments = judgement.run.target, judgement.run.arguments
    names = arguments.names(target.names)
    for number, (mine, other) in enumerate(_alike(arguments)):
        if number == _MOST:
            return None
        try:
            exchanged = _with(arguments, mine, arguments.flat[other])
            if not _unread(judgement, exchanged, mine):
                continue
            right = not judge(target, exchanged, settings, until_wrong=True).wrong
        except Exception:  # the user's code, on a value that belongs to another input
            continue
        if right:
            return names[mine], names[other]
    return None


def _alike(arguments: Arguments) -> Iterator[tuple[int, int]]:
    """Two inputs of one kind and shape with different values."""
    flat = arguments.flat
    for i, mine in enumerate(flat):
        for j, other in enumerate(flat):
            if i != j and _kind(mine) is not None and _kind(mine) == _kind(other) and not _equal(mine, other):
                yield i, j


def _kind(value: Any) -> Any:
    if isinstance(value, Tensor):
        return (value.shape, value.dtype) if value.is_floating_point() or value.is_complex() else None
    return float if isinstance(value, float) else None


def _equal(a: Any, b: Any) -> bool:
    return torch.equal(a, b) if isinstance(a, Tensor) else bool(a == b)


def _with(arguments: Arguments, position: int, value: Any) -> Arguments:
    if isinstance(value, Tensor):
        return arguments.replaced({position: value.detach().clone()})
    flat = [value if i == position else v for i, v in enumerate(arguments.flat)]
    return replace(arguments, flat=flat)


def _unread(judgement: Judgement, exchanged: Arguments, position: int) -> bool:
    """Whether forward returns the same with this value, and with one that is a little different."""
    run, value = judgement.run, exchanged.flat[position]
    beside = _with(exchanged, position, value * 1.25 + 0.125)
    for arguments in (exchanged, beside):
        outputs = forward(run.target, arguments, seed=0, plain=True).outputs
        if len(outputs) != len(run.outputs) or not all(map(torch.equal, outputs, run.outputs)):
            return False
    return True

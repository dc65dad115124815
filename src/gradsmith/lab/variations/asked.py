"""What forward itself asks of its indices: numbers it compares them with, and whether it adds up what they point at.

A label that is compared with -100 may be -100, and an index that forward accumulates by may occur twice, even where the
example shows neither.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradsmith.lab.arguments import Leaf
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward
from gradsmith.source import knowledge as know


@dataclass
class Asked:
    """By position of the input."""

    compared: dict[int, list[int]] = field(default_factory=dict)
    accumulated: set[int] = field(default_factory=set)


def asked(lab: Lab) -> Asked:
    """Found by running forward once, and kept for this Lab."""
    known: Asked | None = lab.__dict__.get("_asked")
    if known is None:
        target, arguments = lab.precise
        leaves = [x for x in arguments.leaves if x.tensor.dtype in (torch.int64, torch.int32) and x.tensor.numel() > 1]
        listening = _Listening(leaves)
        with torch.no_grad(), contextlib.suppress(Exception):  # user code; what was heard until then counts
            if leaves:
                with listening:
                    forward(target, arguments, seed=lab.settings.seed, plain=True)
        known = lab.__dict__["_asked"] = listening.heard
    return known


class _Listening(TorchFunctionMode):
    def __init__(self, leaves: list[Leaf]) -> None:
        super().__init__()
        self.leaves = leaves
        self.heard = Asked()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        values = [*args, *(kwargs or {}).values()]
        if name in know.EQUALITIES and len(args) == 2:
            self._compared(*args)
        elif name.rstrip("_") in know.ACCUMULATE:
            self.heard.accumulated.update(p for v in values if (p := self._position(v)) is not None)
        return func(*args, **(kwargs or {}))

    def _compared(self, tensor: Any, number: Any) -> None:
        position = self._position(tensor)
        if position is not None and isinstance(number, int) and not isinstance(number, bool):
            numbers = self.heard.compared.setdefault(position, [])
            if number not in numbers:
                numbers.append(number)

    def _position(self, value: Any) -> int | None:
        """The input that this is, or is a view or copy of with the same numbers."""
        if not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex():
            return None
        for leaf in self.leaves:
            mine = leaf.tensor
            if value.numel() == mine.numel() and torch.equal(value.reshape(-1), mine.reshape(-1).to(value.dtype)):
                return leaf.position
        return None

"""Does forward cut a tensor into parts of equal size? Where it cannot, at an odd size, nothing is promised."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradsmith.lab.arguments import Arguments
from gradsmith.lab.lab import Lab
from gradsmith.lab.run import forward

_CUTS = frozenset({"chunk", "tensor_split"})


def uneven(lab: Lab, arguments: Arguments) -> bool:
    """Whether forward cuts a tensor into parts of different sizes, with `chunk` or by slices that add up to it."""
    cuts = _Cuts()
    with torch.no_grad(), cuts, contextlib.suppress(Exception):  # user code; what was cut until then counts
        forward(lab.precise[0], arguments, seed=lab.settings.seed, plain=True)
    return cuts.uneven or any(_add_up(base, parts) for base, parts in cuts.sliced.values())


def _add_up(base: torch.Size, parts: Sequence[torch.Size]) -> bool:
    """Are two of the parts the whole, without being halves of it?"""
    for a, b in itertools.combinations(set(parts), 2):
        differing = [d for d, (m, n) in enumerate(zip(a, b)) if m != n] if len(a) == len(b) == len(base) else []
        if len(differing) == 1 and a[differing[0]] + b[differing[0]] == base[differing[0]]:
            return True
    return False


class _Cuts(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.uneven = False
        self.sliced: dict[int, tuple[torch.Size, list[torch.Size]]] = {}
        self.alive: list[Tensor] = []  # an id is good for as long as its tensor lives

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in _CUTS:
            self.uneven |= len({part.shape for part in result}) > 1
        elif name == "__getitem__" and isinstance(args[0], Tensor):
            self.alive.append(args[0])
            self.sliced.setdefault(id(args[0]), (args[0].shape, []))[1].append(result.shape)
        return result

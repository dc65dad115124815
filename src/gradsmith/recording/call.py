"""One way in which a Function was called, and copies of what it was called with first."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.cells import cell_number
from gradsmith.inputs.scaling import FULL, scaled
from gradsmith.lab.process import torch_says

KEPT_CALLS = 3  # of each signature; later ones are only counted
_SMALL = 1 << 14  # elements; of larger calls only the first is kept


@dataclass(slots=True)
class Call:
    """One way in which a Function was called: its class, how often, from where, and copies of the first inputs."""

    cls: type[torch.autograd.Function]
    count: int = 0
    # How the hook recognises the next such call: the type of the ctx, the hash of the signature (None: it cannot).
    context: type | None = None
    known_as: int | None = None
    # The call that came after this one, last time: a training step repeats its calls in order.
    follower: Call | None = field(default=None, repr=False, compare=False)
    lines: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[Any, ...]] = field(default_factory=list)
    scaled: str = ""  # how large inputs were made smaller, for the reader

    @property
    def name(self) -> str:
        # Loaded when something ran: a test session in which nothing does pays for no more of gradsmith than this folder.
        from gradsmith.lab.subject.target import short_name

        return short_name(self.cls)


def keep(call: Call, args: tuple[Any, ...]) -> None:
    call.lines[user_line(sys._getframe(1))] += 1
    leaves = [v for v in pytree.tree_leaves(list(args)) if isinstance(v, Tensor)]
    if any(not _plain(t) for t in leaves):
        return
    elements = sum(t.numel() for t in leaves)
    if call.examples and elements > _SMALL:
        return
    with torch.no_grad(), contextlib.suppress(RuntimeError):  # out of memory: the call stays counted
        if elements > FULL:
            args, call.scaled = scaled(args)
        seen: dict[int, Tensor] = {}
        call.examples.append(tuple(_copied(value, seen) for value in args))


def copies(value: Any) -> Any:
    """Tensors by value, everything else as it is; None where there are too many of them or their values do not exist."""
    leaves = [v for v in pytree.tree_leaves(value) if isinstance(v, Tensor)]
    if any(not _plain(t) for t in leaves) or sum(t.numel() for t in leaves) > FULL:
        return None
    with torch.no_grad(), contextlib.suppress(RuntimeError):  # out of memory
        return _copied(value, {})
    return None


def _copied(value: Any, seen: dict[int, Tensor]) -> Any:
    """Tensors by value, also in lists and dicts; modules and other objects stay what they are: they live on."""

    def copy(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        if id(item) not in seen:
            seen[id(item)] = item.detach().clone().requires_grad_(item.requires_grad)
        return seen[id(item)]

    return pytree.tree_map(copy, value)


def _plain(tensor: Tensor) -> bool:
    if type(tensor) is not Tensor and not isinstance(tensor, torch.nn.Parameter):
        return False
    return not torch_says.under_a_transform(tensor)


def user_line(frame: Any) -> str:
    """`train.py:12`, or `cell 3:2` in a notebook: the innermost line at or around `frame` outside torch and gradsmith."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_OWN) and "/torch/" not in path:
            cell = cell_number(path)
            return f"{Path(path).name if cell is None else f'cell {cell}'}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


_OWN = str(Path(__file__).parents[1])

"""What speaks for a loss whose gradient is wrong on guessed labels: they may have to be 0 or 1."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from gradsmith.checking.elsewhere.structure import Elsewhere, is_right
from gradsmith.lab.subject.target import Target
from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import code_of


def where_labels_are_binary(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """The gradient is right where inputs without a gradient that are called labels, or taken from 1, are zeros and ones."""
    text = code_of(target.function or target.original)
    places = {i: name for i, (name, value) in enumerate(zip(target.names, args)) if _may_be_labels(name, value, text)}
    generator = torch.Generator().manual_seed(seed)
    other = tuple(
        torch.randint(0, 2, a.shape, generator=generator).to(a) if i in places else a for i, a in enumerate(args)
    )
    if not places or not is_right(target, other, kwargs, seed):
        return None
    names = " and ".join(f"'{name}'" for name in places.values())
    return Elsewhere(other, f"the gradient is right where {names} holds zeros and ones")


def _may_be_labels(name: str, value: Any, text: str) -> bool:
    if not isinstance(value, Tensor) or value.requires_grad or value.is_complex() or value.numel() < 2:
        return False
    taken_from_one = re.search(rf"\b1(\.0?)?\s*-\s*{re.escape(name)}\b", text) is not None
    # Integers that nobody calculates with are classes, and there may be more than two of them.
    return taken_from_one or (value.is_floating_point() and is_a(name, "zero-one label"))

"""Before a guess accuses: does the gradient fit on inputs of the kind its author may have meant?

A Function that is only reached by square matrices may rely on their symmetry, and one that is given a function may rely
on what that function is. Only structure is excused, never values: a gradient that is right for positive numbers alone
is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.inputs.guess.proposals import Written
from gradsmith.lab.arguments import Arguments
from gradsmith.lab.gradient import Settings, judge
from gradsmith.lab.target import Target


@dataclass(frozen=True)
class Opinion:
    """Other arguments on which the gradient is right, and what is special about them."""

    args: tuple[Any, ...]
    excuse: str


def symmetric_excuse(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Opinion | None:
    """The same arguments with their square matrices made symmetric, if that alone makes every gradient right."""
    squares = [i for i, a in enumerate(args) if isinstance(a, Tensor) and _is_square(a)]
    for chosen in ([[i] for i in squares] + [squares]) if squares else []:
        other = tuple(_symmetric(a) if i in chosen else a for i, a in enumerate(args))
        try:
            judgement = judge(target, Arguments.of(other, kwargs, target.names), Settings(seed=seed))
        except Exception:  # user code on values it was not asked about
            continue
        if judgement.pairs and not judgement.wrong and not judgement.noisy:
            names = ", ".join(f"'{target.names[i]}'" for i in chosen if i < len(target.names))
            return Opinion(other, f"the gradient is right where {names} is symmetric, and only there")
    return None


def depends_on_a_guessed_function(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, (Written, torch.nn.Module)) for a in args)


def _is_square(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.ndim > 1 and tensor.shape[-1] == tensor.shape[-2] > 1


def _symmetric(tensor: Tensor) -> Tensor:
    half = tensor.detach()
    return ((half + half.mT) / 2).requires_grad_(tensor.requires_grad)

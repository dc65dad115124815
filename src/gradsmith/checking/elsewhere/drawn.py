"""Before a guess accuses: is the gradient right on inputs from some domain of the table?

A guess has no structure, and an author may mean inputs that have: a symmetric matrix, rows that sum to 1, points of a ball.
A gradient that is right on several draws from one domain is not called wrong; the reader is told which domain it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradsmith.checking.elsewhere.structure import Elsewhere, is_right
from gradsmith.lab.explore.domains import MATRICES, Domain, drawn_from, every_domain
from gradsmith.lab.explore.tape import stopped_after
from gradsmith.lab.measure.gradient import Settings
from gradsmith.lab.measure.screening import is_plainly_right
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.source import model_of
from gradsmith.source.knowledge import OF_SYMMETRIC

_DRAWS = 2
_OPERATIONS = 300_000  # on other values an iteration may not converge


def where_a_domain_holds(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Elsewhere | None:
    """The same arguments with one of them, or all that are floating, drawn from a domain on which every gradient is right."""
    floating = [i for i, a in enumerate(args) if _is_data(a)]
    groups = [[i] for i in floating] + ([floating] if len(floating) > 1 else [])
    for places in groups:
        for domain in _common(args, places):
            others = [_drawn(args, places, domain, seed + draw) for draw in range(_DRAWS)]
            # On matrices of a kind a gradient is right along matrices of that kind, which takes the whole judgement.
            right = is_right if domain.name in MATRICES else _plainly_right
            if all(right(target, other, kwargs, seed) for other in others):
                names = " and ".join(f"'{_name(target, i)}'" for i in places)
                words = f"the gradient is right where each of {names} {domain.words}, and not on the guess"
                words = words if len(places) > 1 else words.replace("where each of ", "where ")
                # Where forward calls nothing that takes symmetry for granted, a forgotten transposition looks the same.
                meant = domain.name not in MATRICES or not OF_SYMMETRIC.isdisjoint(_called(target))
                return Elsewhere(others[0], words, meant)
    return None


def _plainly_right(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> bool:
    """Whether a short look finds every gradient right there: most domains are none, and that need not be proved."""
    try:
        with stopped_after(_OPERATIONS):
            run = forward(target, Arguments.of(args, kwargs, target.names), seed=seed)
            v = run.normal(torch.Generator().manual_seed(seed + 7))
            return is_plainly_right(run, v, Settings(seed=seed))
    except Exception:  # user code on values it was not asked about
        return False


def _common(args: tuple[Any, ...], places: list[int]) -> Iterator[Domain]:
    """The domains that all of these tensors could come from, the widest first: the least that has to be assumed."""
    kinds = [{d.name: d for d in every_domain(args[i], differentiable=args[i].requires_grad)} for i in places]
    yield from (d for name, d in reversed(kinds[0].items()) if all(name in known for known in kinds))


def _drawn(args: tuple[Any, ...], places: list[int], domain: Domain, seed: int) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(seed)

    def one(tensor: Tensor) -> Tensor:
        return drawn_from(domain, tensor.detach(), generator).requires_grad_(tensor.requires_grad)

    return tuple(one(a) if i in places else a for i, a in enumerate(args))


def _called(target: Target) -> set[str]:
    """The operations that forward calls."""
    model = model_of(target.function) if target.function is not None else None
    calls = model.forward.calls if model is not None and model.forward is not None else []
    return {call.op for call in calls if call.op is not None}


def _is_data(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 1 and value.ndim > 0


def _name(target: Target, position: int) -> str:
    return target.names[position] if position < len(target.names) else f"input {position + 1}"

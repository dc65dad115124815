"""A guess may hold more than forward reads: whoever takes pairs of numbers reads two of the four in a row."""

from __future__ import annotations

from typing import Any

import torch

from gradsmith.checking.elsewhere.structure import Elsewhere, is_right
from gradsmith.diagnosis.truth import dense_truth
from gradsmith.lab import Lab, Pair
from gradsmith.lab.measure.gradient import Settings
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target


def where_every_element_is_read(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """The same inputs without the elements that forward never reads, if every gradient is right then."""
    try:
        lab = Lab(target, Arguments.of(args, kwargs, target.names), Settings(seed=seed))
        wrong = [p for p in lab.gradient.pairs if p.status == "wrong"]
        for i, value in enumerate(args):
            mine = [p for p in wrong if p.leaf.tensor is value]
            if not mine or (read := _read(lab, mine)) is None or read.shape == value.shape:
                continue
            other = tuple(read if k == i else a for k, a in enumerate(args))
            if is_right(target, other, kwargs, seed):
                return Elsewhere(
                    other, f"forward reads a part of {_shape(value)} alone, and on {_shape(read)} it is right"
                )
    except Exception:  # user code on values it was not asked about
        return None
    return None


def _read(lab: Lab, pairs: list[Pair]) -> torch.Tensor | None:
    """A tensor without the rows and columns on which no output depends; None where that is not known."""
    depends: torch.Tensor | None = None
    for pair in pairs:
        truth = dense_truth(lab, pair, pair.v)
        if truth is None or not bool(truth.known.all()):
            return None
        counts = truth.values != 0
        depends = counts if depends is None else depends | counts
    assert depends is not None
    read = pairs[0].leaf.tensor.detach()
    for dim in range(read.ndim):
        others = [d for d in range(read.ndim) if d != dim]
        kept = depends.any(dim=others) if others else depends
        read = read.index_select(dim, kept.nonzero().flatten().to(read.device))
    return read.clone().requires_grad_()


def _shape(tensor: torch.Tensor) -> str:
    return repr(tuple(tensor.shape))

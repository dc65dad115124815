"""Simple functions of what forward had at hand: the words in which forgotten factors and terms are spelled."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.diagnosis.case import Case


@dataclass(frozen=True)
class Word:
    text: str
    value: Tensor


def words_for(case: Case) -> list[Word]:
    """Tensors of the shape of the gradient, with the text a user would write for them; the plainest first."""
    plain: dict[str, Tensor] = {case.name: case.x, **case.inputs}
    if case.elementwise:
        plain["output"] = case.output
    words: list[Word] = []
    for name, tensor in plain.items():
        if not _spreads(tensor, case.truth):
            continue
        z = tensor.double().expand_as(case.truth)
        words += [Word(name, z), Word(f"(1 - {name})", 1 - z), Word(f"{name}**2", z**2)]
        words += [Word(f"(1 - {name}**2)", 1 - z**2), Word(f"{name} * (1 - {name})", z * (1 - z))]
        words += [Word(f"2 * {name}", 2 * z), Word(f"1 / {name}", 1 / z)]
        words += [Word(f"torch.{f.__name__}({name})", f(z)) for f in (torch.sigmoid, torch.cos, torch.sin, torch.tanh)]
        s = torch.sigmoid(z)
        words.append(Word(f"sigmoid({name}) * (1 - sigmoid({name}))", s * (1 - s)))
    if case.elementwise:
        words.append(Word("grad_output", case.v.double()))
    return [w for w in words if bool(torch.isfinite(w.value).all()) and not _is_constant(w.value)]


def _spreads(tensor: Tensor, like: Tensor) -> bool:
    """Does the one broadcast to the shape of the other? torch.broadcast_shapes imports sympy to say so, 0.7 s."""
    sizes = zip(reversed(tensor.shape), reversed(like.shape))
    return tensor.ndim <= like.ndim and all(mine in (1, other) for mine, other in sizes)


def _is_constant(value: Tensor) -> bool:
    """A constant multiple is the business of the cause `factor`."""
    return value.numel() > 1 and bool((value - value.flatten()[0]).abs().max() < 1e-9)

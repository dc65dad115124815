"""nn.Modules as subjects: a class is built first, by guessing what its constructor wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gradsmith.findings import one_line
from gradsmith.inputs.guess.clues import NOTHING, Clue, signature_clues
from gradsmith.lab.process.state import preserved, seed_all
from gradsmith.source.lexicon import is_a

_ATTEMPTS = 60
# What constructors call their sizes. Inputs and outputs differ, so that a transposed weight cannot hide.
_SIZES = {
    "input size": (4, 8),
    "output size": (6, 4, 8),
    "head count": (2, 1),
    "layer count": (2, 6),
    "kernel size": (3, 2),
    "convolution option": (1,),
}


@dataclass(frozen=True)
class Built:
    """An instance and the call that made it."""

    module: nn.Module
    code: str


def is_module_class(subject: Any) -> bool:
    return isinstance(subject, type) and issubclass(subject, nn.Module)


def constructed(cls: type[nn.Module], seed: int) -> Iterator[Built | str]:
    """Instances of `cls`, or why it could not be built; a few distinct ones at most."""
    clues = [c for c in signature_clues(cls, skip_first=False) if not c.starred]
    needed = [c for c in clues if c.default is NOTHING or _size_of(c)]
    options = [_values(clue) for clue in needed]
    made = 0
    for rank in range(_ATTEMPTS):
        chosen = _choice(options, rank)
        if chosen is None or made == 3:
            return
        kwargs = {clue.name: value for clue, value in zip(needed, chosen)}
        with preserved():
            seed_all(seed)
            try:
                module = cls(**kwargs)
            except Exception as error:  # the user's constructor on arguments it may not want
                yield one_line(error)
                continue
        made += 1
        yield Built(module, f"{cls.__name__}({', '.join(f'{k}={v!r}' for k, v in kwargs.items())})")


def instances(cls: type[nn.Module], seed: int) -> Iterator[Built]:
    """Instances of `cls`: without arguments where that works, else with guessed ones."""
    with preserved():
        seed_all(seed)
        try:
            plain = cls()
        except Exception:  # its constructor wants arguments, or raises
            plain = None
    if plain is not None:
        yield Built(plain, f"{cls.__name__}()")
        return
    for made in constructed(cls, seed):
        if not isinstance(made, str):
            yield made


def _size_of(clue: Clue) -> tuple[int, ...]:
    default = clue.default
    if default is not NOTHING and (not isinstance(default, int) or default <= 16):
        return ()  # no size, or the author's own is small enough to check
    return next((sizes for role, sizes in _SIZES.items() if is_a(clue.name, role)), ())


def _values(clue: Clue) -> list[Any]:
    sizes = list(_size_of(clue))
    if clue.declared.kind in ("float", "number"):
        return [0.5, 1.0]
    if clue.declared.kind == "bool":
        return [True, False]
    return [*sizes, *(n for n in (4, 2, 1) if n not in sizes), 0.5, torch.tanh, True]


def _choice(options: list[list[Any]], rank: int) -> list[Any] | None:
    """The rank-th combination, the first values varying slowest; None after the last."""
    chosen = []
    for values in options:
        chosen.append(values[rank % len(values)])
        rank //= len(values)
    return chosen if rank == 0 else None

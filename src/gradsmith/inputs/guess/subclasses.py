"""Inputs of a tensor subclass: which classes a Function speaks of, and how its constructor is called."""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.inputs.guess.candidates import Sizes, candidates
from gradsmith.inputs.guess.cheapest import cheapest
from gradsmith.inputs.guess.clues import NOTHING, Clue, signature_clues
from gradsmith.inputs.guess.proposals import FRAMES, Frame, Proposal, Recipe, Sparse, made
from gradsmith.lab.subject.target import Target, backward_of
from gradsmith.lab.subject.wrapped import is_wrapper
from gradsmith.source.loaded import text_of

_PLAIN = (Tensor, nn.Parameter, nn.Buffer)
_TRIES = 300
_COST = 2.0  # more than a plain tensor, unless the signature asks for it


def classes_of(target: Target) -> list[type[Tensor]]:
    """The tensor subclasses with a constructor of their own that the source of a Function names."""
    if target.function is None:
        return []
    text = "".join(map(text_of, (target.function.forward, backward_of(target.function))))
    known = getattr(inspect.unwrap(target.function.forward), "__globals__", {})
    found = {
        value: None
        for name, value in known.items()
        if isinstance(value, type)
        and issubclass(value, Tensor)
        and value not in _PLAIN
        # Without one, a class wraps nothing.
        and value.__new__ is not Tensor.__new__
        and re.search(rf"\b{re.escape(name)}\b", text)
    }
    return list(found)


def with_subclasses(clue: Clue, plain: list[Proposal], classes: list[type[Tensor]]) -> list[Proposal]:
    """The proposals for one input, with those of the classes; only these where the signature names one."""
    if not any(p.kind == "floating" for p in plain):
        return plain
    asked = [c for c in classes if re.search(rf"\b{re.escape(c.__name__)}\b", clue.annotation)]
    gradient = clue.gradient is not False
    made_of = [
        Proposal(rank * 0.5 + (0 if asked else _COST), "wrapped", value=recipe, gradient=gradient)
        for cls in asked or classes
        for rank, recipe in enumerate(recipes(cls))
    ]
    return sorted([*made_of, *([] if asked and made_of else plain)], key=lambda p: p.cost)


def recipes(cls: type[Tensor]) -> list[Recipe]:
    """Up to two ways to build the class that work: with dense parts, and with numbers and a mask in coordinates."""
    dense = next(_working(cls, _ways(cls)), None)
    if dense is None or [p.kind for p in dense.parts] != ["floating", "bool"]:
        return [dense] if dense else []
    return [dense, *_working(cls, iter([Recipe(Sparse(cls), dense.parts)]))]


def _ways(cls: Any) -> Iterator[Recipe]:
    """Values for the parameters that have no default."""
    build = cls.__new__ if "__new__" in vars(cls) else cls.__init__
    needed = [c for c in signature_clues(build, skip_first=True) if c.default is NOTHING and not c.starred]
    if not needed or any(c.keyword for c in needed):
        return
    # What is in a wrapper is most often a tensor, whatever it is called.
    options = [[p for p in candidates(c, Sizes()) if p.is_tensor or c is not needed[0]] for c in needed]
    for choice in itertools.islice(cheapest([[p.cost for p in o] for o in options]), _TRIES):
        yield Recipe(cls, tuple(o[i] for o, i in zip(options, choice)))


def _working(cls: type[Tensor], ways: Iterator[Recipe]) -> Iterator[Recipe]:
    """Those that give a tensor of the class, in a frame of two dimensions."""
    for recipe in ways:
        built = _built(recipe, FRAMES[0])
        if isinstance(built, cls) and is_wrapper(built):
            yield recipe


def _built(recipe: Recipe, frame: Frame) -> Any:
    value = made(Proposal(0, "wrapped", value=recipe), frame, torch.float64, torch.Generator().manual_seed(0))
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return value.make(*value.parts)
    except Exception:  # the user's constructor on values it may not want
        return None

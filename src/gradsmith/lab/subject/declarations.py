"""What a user declared about a gradient: by decorator, or by a comment in the source, read as lint reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gradsmith.lab.subject.target import Target
from gradsmith.source.loaded import declared_at
from gradsmith.surrogate_kinds import SURROGATE

ATTRIBUTE = "__gradsmith_surrogate__"


@dataclass(frozen=True)
class Declaration:
    """The gradient is meant to be a surrogate of this kind, or an approximation, or (neither) exact."""

    surrogate: str | None = None
    approximate: bool = False
    like: Callable[..., Any] | None = None


def declaration_of(target: Target) -> Declaration:
    """What stands at the subject, else at the nearest class it derives from."""
    for part in parts(target):
        stated = vars(part).get(ATTRIBUTE) if hasattr(part, "__dict__") else None
        if isinstance(stated, Declaration):
            return stated
        if (written := _written(part)) is not None:
            return written
    return Declaration()


def parts(target: Target) -> Iterator[Any]:
    """The classes of a Function, or a custom op and the functions it is made of."""
    if target.function is not None:
        yield from (cls for cls in target.function.__mro__ if not cls.__module__.startswith(("torch.", "builtins")))
        return
    yield target.original
    if target.kind == "custom_op":
        yield from filter(None, (getattr(target.original, name, None) for name in ("_init_fn", "_backward_fn")))


def _written(part: Any) -> Declaration | None:
    """What a comment, or a decorator, in the source of this part says."""
    found = declared_at(part)
    if found is None:
        return None
    return Declaration(approximate=True) if found.gradient == "approximate" else Declaration(found.kind or SURROGATE)

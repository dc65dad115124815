"""What a user declared about a gradient: by decorator, or by a comment on the class line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradsmith.lab.target import Target

ATTRIBUTE = "__gradsmith_surrogate__"
_COMMENT = re.compile(r"#\s*gradsmith:\s*(surrogate\[([\w-]+)\]|surrogate|approximate)")


@dataclass(frozen=True)
class Declaration:
    """The gradient is meant to be a surrogate of this kind, or an approximation, or (neither) exact."""

    surrogate: str | None = None
    approximate: bool = False
    like: Callable[..., Any] | None = None


def declaration_of(target: Target) -> Declaration:
    subject = target.function if target.function is not None else target.original
    stated = getattr(subject, ATTRIBUTE, None)
    if isinstance(stated, Declaration):
        return stated
    match = _COMMENT.search(_header(subject, target.path)) if target.function is not None else None
    if match is None:
        return Declaration()
    if match.group(1) == "approximate":
        return Declaration(approximate=True)
    return Declaration(surrogate=match.group(2) or "custom")


def _header(cls: Any, path: str | None) -> str:
    """The lines of a class up to its first method (comments above `class` do not count)."""
    try:
        source = inspect.getsource(cls)
    except (TypeError, OSError):
        from gradsmith.lab.cells import class_source

        source = class_source(path, cls.__name__) if path else ""
    return re.split(r"^\s+(?:@|def )", source, maxsplit=1, flags=re.M)[0]

"""What a module declares as `gradsmith_inputs`: names, or classes and functions themselves, and what to call them with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradsmith.findings import GradsmithError, one_line

_ATTRIBUTE = "gradsmith_inputs"
_WRITE = 'write a dict such as {"Swish": lambda: (torch.randn(4, 3, requires_grad=True),)}'


def declarations(module: Any) -> dict[str, Any]:
    """The entries by name, none where nothing is declared. What cannot be read is a `GradsmithError` of one sentence."""
    given = getattr(module, _ATTRIBUTE, None)
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise GradsmithError(f"{_ATTRIBUTE} is {_a(type(given).__name__)}; {_WRITE}")
    try:
        entries = list(given.items())
    except Exception as error:  # a mapping of the user's own may raise anything
        raise GradsmithError(f"{_ATTRIBUTE} cannot be read ({one_line(error)}); {_WRITE}") from None
    return {_name(key): value for key, value in entries}


def declared_names(module: Any) -> tuple[list[str], str]:
    """The names that inputs are declared for, and the sentence on a declaration that cannot be read."""
    try:
        return list(declarations(module)), ""
    except GradsmithError as error:
        return [], str(error)


def _name(key: Any) -> str:
    name = key if isinstance(key, str) else getattr(key, "__qualname__", None)
    if not isinstance(name, str):
        raise GradsmithError(f"a key of {_ATTRIBUTE} is {_a(type(key).__name__)}, not a name or a class; {_WRITE}")
    return name


def _a(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"

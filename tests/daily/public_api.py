"""What we promise to keep, as data: names, parameters, fields, commands and their options.

python -m tests.daily.public_api > tests/daily/public_api.json      after something was added
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Any

import gradsmith


def described() -> dict[str, Any]:
    """The public API as it is now."""
    python = {name: _of(getattr(gradsmith, name)) for name in sorted(gradsmith.__all__) if name != "__version__"}
    return {"python": python, "ops": sorted(gradsmith.ops.__all__), "command line": _commands()}


def _of(thing: Any) -> dict[str, Any]:
    if inspect.ismodule(thing):
        return {"kind": "module"}
    if isinstance(thing, type):
        members = {n: v for n, v in vars(thing).items() if not n.startswith("_") and callable(getattr(thing, n))}
        fields = [f.name for f in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else []
        properties = [n for n, v in vars(thing).items() if isinstance(v, property) and not n.startswith("_")]
        methods = {name: _parameters(getattr(thing, name)) for name in sorted(members)}
        return {"kind": "class", "fields": fields, "properties": sorted(properties), "methods": methods}
    return {"kind": "function", "parameters": _parameters(thing)} if callable(thing) else {"kind": "value"}


def _parameters(function: Any) -> list[list[Any]]:
    """[name, kind, default] of each; a default that is not a plain value counts by its type."""
    found = []
    for parameter in inspect.signature(function).parameters.values():
        plain = isinstance(parameter.default, (bool, int, float, str, tuple, type(None)))
        default = repr(parameter.default) if plain else type(parameter.default).__name__
        required = parameter.default is parameter.empty
        found.append([parameter.name, parameter.kind.name, None if required else default])
    return found


def _commands() -> dict[str, list[str]]:
    from gradsmith.cli.group import COMMANDS, _loaded, _options

    return {name: sorted(_options(_loaded(name))) for name in sorted(COMMANDS)}


if __name__ == "__main__":
    print(json.dumps(described(), indent=1))

"""Objects that are neither tensors nor numbers: what a Function does with one tells what it has to be.

A value that is called, or of which methods of a module are read, is a module; one of which other attributes are read is an
instance of a class of the same file that has them all; one that is walked through is a list of such. Classes are built by
guessing what their constructors want, in the same way.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from gradsmith.inputs.guess.cheapest import cheapest
from gradsmith.inputs.guess.clues import NOTHING, Clue, signature_clues
from gradsmith.inputs.guess.functions import MIXED, PRODUCT, Written
from gradsmith.inputs.guess.harmless import only_computes
from gradsmith.lab.process.state import preserved, seed_all
from gradsmith.source.loaded import class_definition_of, definition_of
from gradsmith.source.uses import Uses, uses

_DEEP = 3  # a block of layers of functions
_ATTEMPTS = 12
_NUMBERS = (4, 2, 1, 0.5, True)
_written: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def written(value: Any) -> str:
    """The code that builds an object of this file again; what Python says of it where it was not built here."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        inside = ", ".join(map(written, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, Written):
        return value.code
    try:
        return _written.get(value, "") or repr(value)
    except TypeError:  # what cannot be a key was not built here
        return repr(value)


def fitting(found: Uses, home: str, depth: int = 0) -> list[Any]:
    """Objects that can be used in this way, the plainest first; none where a tensor or a number would do as well."""
    if depth > _DEEP:
        return []
    foreign = {name for name in found.attributes if not hasattr(Tensor, name)}
    asked = [cls for text in found.classes if (cls := _named(text, home)) is not None]
    if built := [made for cls in asked if cls in _own_classes(home) for made in list(_built(cls, depth))[:1]]:
        return built
    if foreign:
        modules = _modules() if all(hasattr(nn.Module, name) for name in foreign) else []
        return [*modules, *_instances_with(foreign, home, depth)]
    if found.attributes:
        return []
    if found.called:
        return _modules() if found.called == 1 else [MIXED, PRODUCT, *_modules()]
    if found.places:
        parts = [fitting(part, home, depth + 1) for part in found.places]
        return [tuple(part[0] for part in parts)] if all(parts) else []
    if found.each is not None:
        pair = [fitting(found.each, home, depth + 1)[:1] for _ in range(2)]
        listed = [pair[0] + pair[1]] if all(pair) else []
        return [_listed(each) if nn.ModuleList in asked else each for each in listed]
    if found.mapping:
        return [{}]
    for name, place in found.passed:
        if objects := fitting(_passed_to(name, place, home), home, depth + 1):
            return objects
    return []


def parameters_of(objects: list[Any]) -> list[nn.Parameter]:
    """The parameters of all modules among some values, also of those in lists: each once."""
    found: dict[int, nn.Parameter] = {}
    waiting = list(objects)
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, nn.Module):
            found.update((id(p), p) for p in each.parameters())
        elif isinstance(each, (list, tuple)):
            waiting = [*each, *waiting]
    return list(found.values())


def uses_in_class(cls: type) -> dict[str, Uses]:
    """What a class does with the arguments of its constructor, in all of its methods."""
    node = class_definition_of(cls)
    methods = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.args.args] if node is not None else []
    first = [m for m in methods if m.name == "__init__"]
    others = [m for m in methods if m.name != "__init__"]
    return uses([(m, m.args.args[0].arg) for m in (*first, *others)]) if first else {}


def likely_arguments(cls: type, clue: Clue, known: dict[str, Uses], depth: int = 0) -> list[Any]:
    """What to build a class with in one place: objects, where it uses them as such."""
    return fitting(known[clue.name], cls.__module__, depth + 1) if clue.name in known else []


def _modules() -> list[Any]:
    """Of any shape, and one with a parameter first, so that its gradient is seen."""
    made: list[tuple[nn.Module, str]] = [
        (nn.PReLU().double(), "torch.nn.PReLU().double()"),
        (nn.Tanh(), "torch.nn.Tanh()"),
    ]
    _written.update(made)
    return [module for module, _ in made]


def _listed(modules: list[nn.Module]) -> nn.ModuleList:
    made = nn.ModuleList(modules)
    _written[made] = f"torch.nn.ModuleList({written(modules)})"
    return made


def _named(text: str, home: str) -> type | None:
    """The class that `nn.ModuleList` is in a module."""
    value: Any = sys.modules.get(home)
    for part in text.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, type) else None


def _passed_to(name: str, place: int | str, home: str) -> Uses:
    """What a class or function of the same module does with what it is given in one place."""
    value = getattr(sys.modules.get(home), name, None)
    if isinstance(value, type):
        known = uses_in_class(value)
        names = list(known)[1:]  # without self
    else:
        node = definition_of(value) if inspect.isfunction(value) else None
        known = uses([(node, "")]) if node is not None else {}
        names = list(known)
    if isinstance(place, int):
        place = names[place] if place < len(names) else ""
    return known.get(place, Uses())


def _instances_with(attributes: set[str], home: str, depth: int) -> list[Any]:
    found = []
    for cls in _own_classes(home):
        if attributes <= _members(cls):
            found += list(_built(cls, depth))[:1]
    return found[:3]


def _own_classes(home: str) -> Iterator[type]:
    for value in list(vars(sys.modules[home]).values()) if home in sys.modules else ():
        if isinstance(value, type) and value.__module__ == home and not issubclass(value, torch.autograd.Function):
            yield value


def _members(cls: type) -> set[str]:
    """What its instances have: attributes of the class, and what its methods write on `self`."""
    found = set(dir(cls))
    for each in cls.__mro__:
        node = class_definition_of(each) if each.__module__ == cls.__module__ else None
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute)) if node is not None else ()
        found |= {n.attr for n in stored if isinstance(n.ctx, ast.Store) and getattr(n.value, "id", "") == "self"}
    return found


def _built(cls: type, depth: int) -> Iterator[Any]:
    """Instances of a class whose constructor does nothing but compute."""
    node = class_definition_of(cls)
    constructor = [n for n in node.body if getattr(n, "name", "") == "__init__"] if node is not None else []
    if any(not isinstance(n, ast.FunctionDef) or not only_computes(n, cls.__module__) for n in constructor):
        return
    known = uses_in_class(cls)
    needed = [c for c in signature_clues(cls, skip_first=False) if not c.starred and c.default is NOTHING]
    options = [[*likely_arguments(cls, clue, known, depth), *_NUMBERS] for clue in needed]
    ranks = [[float(i) for i in range(len(values))] for values in options]
    for number, choice in enumerate(cheapest(ranks)):
        if number == _ATTEMPTS:
            return
        kwargs = {clue.name: values[i] for clue, values, i in zip(needed, options, choice)}
        with preserved():
            seed_all(0)
            try:
                made = cls(**kwargs)
            except Exception:  # the user's constructor on arguments it may not want
                continue
        code = f"{cls.__name__}({', '.join(f'{k}={written(v)}' for k, v in kwargs.items())})"
        if isinstance(made, nn.Module):
            made.double()
            code += ".double()"
        with contextlib.suppress(TypeError):  # a class may forbid it: then it cannot be pasted
            _written[made] = code
        yield made

"""Objects that are neither tensors nor numbers: what a Function does with one tells what it has to be.

A value that is called, or of which methods of a module are read, is a module; one of which other attributes are read is an
instance of a class of the same package that has them all; one that is walked through is a list of such. An annotation names
the class itself. What a module keeps under a name of its own (an enumeration, a table of formats) is taken as it is; else
classes are built by guessing what their constructors want, in the same way.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import inspect
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn

from gradsmith.inputs.guess.candidates import Sizes, candidates
from gradsmith.inputs.guess.cheapest import cheapest
from gradsmith.inputs.guess.clues import NOTHING, Clue, same_package, signature_clues
from gradsmith.inputs.guess.derived import is_unwritten, load_derived
from gradsmith.inputs.guess.functions import MIXED, PRODUCT, Written
from gradsmith.inputs.guess.harmless import only_computes
from gradsmith.inputs.guess.proposals import FRAMES, made
from gradsmith.lab.process.state import preserved, seed_all
from gradsmith.lab.subject.code import tensor_code
from gradsmith.source.loaded import class_definition_of, definition_of
from gradsmith.source.uses import Uses, uses

_DEEP = 3  # a block of layers of functions
_ATTEMPTS = 12
_OF_A_CLASS = 3
_CLASSES = 8  # that are tried for one value
_built_before: WeakKeyDictionary[type, list[Any]] = WeakKeyDictionary()
_known_members: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()
_OF_DICTS = frozenset(dir(dict)) - frozenset(dir(list))
_NEVER = (torch.autograd.Function, Tensor, enum.Enum)
_NUMBERS = (4, 2, 1, 0.5, True)
_written: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_made_up: WeakSet[Any] = WeakSet()


def written(value: Any) -> str:
    """The code that builds an object of this file again; what Python says of it where it was not built here."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        inside = ", ".join(map(written, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {written(v)}" for key, v in value.items()) + "}"
    if isinstance(value, Written):
        return value.code
    if isinstance(value, Tensor):
        return tensor_code(value)
    if isinstance(value, enum.Enum):
        return str(value) if type(value).__str__ is enum.Enum.__str__ else f"{type(value).__name__}.{value.name}"
    try:
        return _written.get(value, "") or repr(value)
    except TypeError:  # what cannot be a key was not built here
        return repr(value)


def was_built(value: Any) -> bool:
    """Whether a value is an instance of a class that was built with guessed arguments."""
    try:
        return value in _made_up
    except Exception:  # how to compare them, or to make a key of them, their class says
        return False


def fitting(found: Uses, home: str, annotated: Sequence[type] = (), depth: int = 0) -> list[Any]:
    """Objects that can be used in this way, the plainest first; none where a tensor or a number would do as well."""
    if depth > _DEEP:
        return []
    if not depth:
        _built_before.clear()  # what one trial did to an object is not handed to the next
    foreign = foreign_attributes(found)
    asked = [cls for text in found.classes if (cls := _named(text, home)) is not None]
    own = [cls for cls in asked if cls in _own_classes(home)]
    if made := [each for cls in dict.fromkeys([*annotated, *own]) for each in _of_class(cls, home, depth)]:
        return made[:_OF_A_CLASS]
    if found.keys or (foreign and foreign <= _OF_DICTS):
        return _tables(sorted(found.keys))
    if foreign:
        modules = _modules() if all(hasattr(nn.Module, name) for name in foreign) else []
        return [*modules, *_instances_with(foreign, home, depth)]
    if found.attributes:
        return []
    if found.called:
        return _modules() if found.called == 1 else [MIXED, PRODUCT, *_modules()]
    if found.places:
        parts = [fitting(part, home, depth=depth + 1) for part in found.places]
        return [tuple(part[0] for part in parts)] if all(parts) else []
    if found.each is not None:
        pair = [fitting(found.each, home, depth=depth + 1)[:1] for _ in range(2)]
        listed = [pair[0] + pair[1]] if all(pair) else []
        return [_listed(each) if nn.ModuleList in asked else each for each in listed]
    if found.mapping:
        return [{}]
    for name, place in found.passed:
        if objects := fitting(_passed_to(name, place, home), home, depth=depth + 1):
            return objects
    return []


def foreign_attributes(found: Uses) -> set[str]:
    """What is read of a value that no tensor has."""
    return {name for name in found.attributes if not hasattr(Tensor, name)}


def _tables(keys: list[str]) -> list[dict[str, Any]]:
    """Dicts with these keys: what their names suggest, then the same kind of value for all."""
    generator = torch.Generator().manual_seed(0)
    usual = {key: next(iter(_plain(Clue(key))), 0.7) for key in keys}
    same = [0.7, torch.randn(FRAMES[0].x, dtype=torch.float64, generator=generator), True, 2]
    return [usual, *(dict.fromkeys(keys, value) for value in same if keys)]


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
    if not clue.classes and clue.name not in known:
        return []
    return fitting(known.get(clue.name, Uses()), cls.__module__, clue.classes, depth + 1)


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
    fit = (cls for cls in _own_classes(home) if attributes <= _members(cls))
    made = (each for cls in itertools.islice(fit, _CLASSES) for each in _of_class(cls, home, depth)[:1])
    return list(itertools.islice(made, _OF_A_CLASS))


def _own_classes(home: str) -> list[type]:
    """The classes of a module, then those it imports of its own package, then all that are loaded of it."""
    package = [name for name in list(sys.modules) if same_package(name, home) and name != home]
    known = {
        value: None
        for name in (home, *package)
        for value in list(vars(sys.modules[name]).values() if name in sys.modules else ())
        if isinstance(value, type) and same_package(value.__module__, home) and not issubclass(value, _NEVER)
    }
    return sorted(known, key=lambda cls: cls.__module__ != home)


def _of_class(cls: type, home: str, depth: int) -> list[Any]:
    """Instances of a class or of classes derived from it: members of an enumeration, what modules name, built ones."""
    if issubclass(cls, enum.Enum):
        return list(cls)[:_OF_A_CLASS]
    if named := _kept_by_name(cls, home):
        return named[:_OF_A_CLASS]
    if is_unwritten(cls) and not cls.__subclasses__():
        load_derived(cls)
    derived = [c for c in _below(cls) if same_package(c.__module__, home)]
    concrete = [each for each in dict.fromkeys([cls, *derived]) if not inspect.isabstract(each)]
    whole = sorted(concrete, key=is_unwritten)[:_CLASSES]
    return list(itertools.islice((made for each in whole for made in _first_built(each, depth)), _OF_A_CLASS))


def _first_built(cls: type, depth: int) -> list[Any]:
    """The first instance that can be built, searched for once in a process: classes are built of one another."""
    if cls not in _built_before:
        _built_before[cls] = []  # a class that needs itself is not built
        _built_before[cls] = list(itertools.islice(_built(cls, depth), 1))
    return _built_before[cls]


def _below(cls: type) -> Iterator[type]:
    derived: list[type] = cls.__subclasses__()
    for each in derived:
        yield each
        yield from _below(each)


def _kept_by_name(cls: type, home: str) -> list[Any]:
    """Instances that the subject's module, or the one that defines the class, has under a name of its own."""
    found: dict[int, Any] = {}
    for module in dict.fromkeys((home, cls.__module__)):
        for name, value in list(vars(sys.modules[module]).items()) if module in sys.modules else ():
            # Not isinstance: a TypedDict and a Protocol raise when they are asked, and others run code of their own.
            if cls in type(value).__mro__ and not isinstance(value, type) and id(value) not in found:
                found[id(value)] = value
                _note(value, _reached(name, module, home))
    return list(found.values())


def _reached(name: str, module: str, home: str) -> str:
    """How the subject's module says what another one calls `name`."""
    if module == home:
        return name
    short = next((n for n, v in vars(sys.modules[home]).items() if v is sys.modules[module]), None)
    return f"{short or f'__import__({module!r}, fromlist=[{name!r}])'}.{name}"


def _note(value: Any, code: str) -> None:
    with contextlib.suppress(Exception):  # what cannot be a key, or be referred to weakly, cannot be pasted
        _written[value] = code


def _members(cls: type) -> frozenset[str]:
    """What its instances have: attributes of the class, and what its methods write on `self`."""
    if cls not in _known_members:
        _known_members[cls] = frozenset(_read_members(cls))
    return _known_members[cls]


def _read_members(cls: type) -> set[str]:
    found = set(dir(cls))
    for each in cls.__mro__:
        node = class_definition_of(each) if same_package(each.__module__, cls.__module__) else None
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
    options = [[*likely_arguments(cls, clue, known, depth), *_plain(clue), *_NUMBERS] for clue in needed]
    ranks = [[float(i) for i in range(len(values))] for values in options]
    for number, choice in enumerate(cheapest(ranks)):
        if number == _ATTEMPTS:
            return
        kwargs = {clue.name: values[i] for clue, values, i in zip(needed, options, choice)}
        with preserved():
            seed_all(0)
            try:
                instance = cls(**kwargs)
                if isinstance(instance, nn.Module):
                    instance.double()  # one whose constructor leaves out nn.Module's has no parts, and raises
            except Exception:  # the user's constructor on arguments it may not want
                continue
        code = f"{cls.__name__}({', '.join(f'{k}={written(v)}' for k, v in kwargs.items())})"
        _note(instance, f"{code}.double()" if isinstance(instance, nn.Module) else code)
        with contextlib.suppress(Exception):
            _made_up.add(instance)
        yield instance


def _plain(clue: Clue) -> list[Any]:
    """What a constructor may be given in one place by its annotation or name: a tensor, a word, a shape."""
    generator = torch.Generator().manual_seed(0)
    drawn = (made(p, FRAMES[0], torch.float64, generator) for p in candidates(clue, Sizes())[:_OF_A_CLASS])
    return [value for value in drawn if value is not NotImplemented and not isinstance(value, nn.Module)]

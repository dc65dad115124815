"""From a clue to the values worth trying for that input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradsmith.inputs.guess.clues import NOTHING, Clue
from gradsmith.inputs.guess.functions import likely
from gradsmith.inputs.guess.names import FLOATS, Habit, habits
from gradsmith.inputs.guess.proposals import Frame, Proposal, ranked
from gradsmith.source import Value
from gradsmith.source.annotations import UNKNOWN
from gradsmith.source.lexicon import is_a

_SIZES = (3, 4, 5, 6, 7, 8, 9, 10)
_PLAIN: dict[str, tuple[Any, ...]] = {
    "int": (2, 1, 3, 0, -1),
    "float": (0.7, 2.0, 1.5, 0.5),
    "bool": (True, False),
    "str": ("mean", "sum", "none"),
    "number": (0.7, 2, 1.5, 1, 0.5),
    "dtype": (torch.float64, torch.float32),
    "device": (torch.device("cpu"),),
    "generator": (None,),
    "none": (None,),
    "unknown": (0.7, 2, True, None, 1, (3, 4), "mean", 0),
}
_PAIRS = ((3, 4), (4, 3), (1, 1), (2, 2), (0, 1))
_TYPES: dict[str, Any] = {
    "int": int, "float": (int, float), "number": (int, float), "bool": bool, "str": str, "shape": tuple, "tuple": tuple,
    "list": list, "dict": dict,
}  # fmt: skip
_LOW = frozenset({"d", "o", "scalar", "lead", "one", "first", "channels"})  # mostly fewer than two dimensions
_SINGLE = frozenset({"scalar", "one", "one one"})  # one element: sums, transpositions and order cannot show


class Sizes:
    """Sizes for the dimensions that annotations name: one name, one size, all different."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def form(self, dims: tuple[str, ...]) -> str:
        sizes: list[int] = []
        for dim in dims:
            word = dim.lstrip("#*_?").partition("=")[2] or dim.lstrip("#*_?")
            if dim.startswith("*") or dim == "...":
                sizes.append(self.known.setdefault(word or "...", 2))
            elif word.isdigit():
                sizes.append(int(word))
            elif word.isidentifier() or not word:
                sizes.append(self._named(word))
            else:
                sizes.append(self._computed(word))
        return "x".join(map(str, sizes)) if sizes else "scalar"

    def spread(self, dims: tuple[str, ...]) -> str:
        """The form where `batch*time` are dimensions of their own; documents often flatten what code does not."""
        return self.form(tuple(part for dim in dims for part in dim.split("*") if not part.isdigit() or part == dim))

    def _named(self, word: str) -> int:
        """Batches are even: losses over pairs split them in halves."""
        if word not in self.known:
            free = [n for n in _SIZES if n not in self.known.values()] or [_SIZES[len(self.known) % len(_SIZES)]]
            self.known[word] = 2 if is_a(word, "batch size") else free[0]
        return self.known[word]

    def _computed(self, word: str) -> int:
        """`dim-1`, `2*dim`: jaxtyping allows arithmetic on names it has seen."""
        match = re.fullmatch(r"(\w+)([-+*/])(\w+)", word)
        if match is None:
            return 3
        a, b = (int(p) if p.isdigit() else self._named(p) for p in (match[1], match[3]))
        return max(1, {"+": a + b, "-": a - b, "*": a * b, "/": a // (b or 1)}[match[2]])


def written_frames(found: Sequence[Clue], sizes: Sizes) -> list[Frame]:
    """Frames of the documented sizes, so that inputs nobody wrote about fit those that somebody did."""
    frames: list[Frame] = []
    shapes = [clue.dims for clue in found if clue.dims]
    for apart in (False, True) if shapes else ():
        form = sizes.spread if apart else sizes.form
        first, *others = [tuple(int(n) for n in form(dims).split("x")) for dims in shapes]
        mapped = next((s for s in others if len(s) == 2 and first[-1] in s), ())
        o = next((n for n in mapped if n != first[-1]), 6)
        frames.append(Frame(first[:-1], first[-1], o, apart))
    return frames[: 2 if any("*" in dim for dims in shapes for dim in dims) else 1]


def candidates(clue: Clue, sizes: Sizes, objects: Sequence[Any] = ()) -> list[Proposal]:
    """What to try for one input, the likeliest first; `objects` are such as can be used as the body uses it."""
    kind, declared = clue.declared.kind, clue.declared
    if objects:
        given = [Proposal(0.8 * rank, value=each) for rank, each in enumerate(objects)]
        return ranked([*given, *_plain(clue, 0 if clue.default is not NOTHING else 3)])
    if kind == "callable" or clue.called or (not clue.tensor and is_a(clue.name, "function")):
        # That its name sounds like a function is no proof that it is one.
        named_only = kind == "unknown" and not clue.called
        return ranked([*_callables(clue), *(_plain(clue, 4) if named_only else ())])
    if kind == "module" or clue.name.lower() in {"module", "layer", "model", "net", "mlp", "linear"}:
        return ranked([Proposal(0, value=torch.nn.Linear(4, 6).double()), *_plain(clue, 3)])
    if kind == "dict" and declared.holds_tensors:
        key = next(iter(_values(declared.parts[0])), 0) if declared.parts[0].kind != "int" else 0
        return ranked(replace(p, kind="table", value=key) for p in _tensors(clue, 0, sizes) if p.kind == "floating")
    if declared.holds_tensors:
        return ranked(_lists(clue, sizes))
    if kind == "unknown" and not declared.parts and not clue.tensor and (clue.uses.spread or clue.uses.places):
        several = [replace(p, value=len(clue.uses.places) or None) for p in _lists(clue, sizes)]
        return ranked([*several, *_plain(clue, 4)])
    if declared.dims is not None:
        return ranked(_shaped(clue, sizes))
    if kind == "tensor" or (kind == "unknown" and not declared.parts and clue.dims):
        rarely = clue.gradient or (clue.gradient is None and clue.default is NOTHING)
        empty = [Proposal(4 if rarely else 0.5, value=None)]
        return ranked([*_tensors(clue, 0, sizes), *(empty if clue.declared.optional or clue.default is None else ())])
    if kind in ("list", "tuple") and not declared.parts:  # of what, nobody says
        return ranked([*_plain(clue, 0), *(replace(p, cost=p.cost + 2) for p in _lists(clue, sizes))])
    if kind not in ("unknown", "ndarray") or declared.never_tensor:
        return ranked(_plain(clue, 0))
    if _optional_stranger(clue):
        tensors = (replace(p, cost=p.cost + 1) for p in _tensors(clue, 0, sizes))
        return ranked([Proposal(0, value=None), *tensors, *_plain(clue, 1.5)])
    tensor_cost, plain_cost = _likelihood(clue)
    return ranked([*_tensors(clue, tensor_cost, sizes), *_plain(clue, plain_cost)])


def _optional_stranger(clue: Clue) -> bool:
    """`report: Report | None`, of a class that is no tensor and that nothing here could build."""
    declared = clue.declared
    named = declared.optional and declared.kind == "unknown" and all(part == UNKNOWN for part in declared.parts)
    return named and not clue.tensor and not clue.gradient


def _habits(clue: Clue) -> list[Habit]:
    """Those of its name; of a name that says nothing, those of the names under which it is passed on."""
    return next(filter(None, map(habits, (clue.name, *sorted(clue.uses.aliases)))), [])


def _likelihood(clue: Clue) -> tuple[float, float]:
    """(cost of a tensor, cost of a plain value)."""
    known = _habits(clue)
    if clue.gradient:
        return 0, 6
    if clue.default is None:
        return (0.5, 1) if clue.gradient is None and clue.tensor else (2, 0)
    if clue.default is not NOTHING:
        return 5, 0
    if clue.tensor:
        return 0, 4
    if clue.constants or any(h.plain_first for h in known):
        return 4, 0
    if clue.gradient is False and clue.kept_plainly and not any(h.elements != "floating" for h in known):
        return 2, 0
    if clue.gradient is False:
        return (1, 0) if any(h.values for h in known) else (0, 1.5)
    return 0, 3


def _lists(clue: Clue, sizes: Sizes) -> Iterator[Proposal]:
    """Lists of tensors; of integers where the name says so: `indices: list[Tensor]`."""
    integer = clue.gradient is not True and any(h.elements == "integer" for h in _habits(clue))
    for kind, cost in (("integers", 0.0), ("tensors", 3.0)) if integer else (("tensors", 0.0),):
        yield from _tensors(clue, cost, sizes, kind)


def _tensors(clue: Clue, cost: float, sizes: Sizes, kind: str | None = None) -> Iterator[Proposal]:
    known: list[Habit] = [h for h in _habits(clue) if h.forms]
    written = [f"{sizes.form(clue.dims)}/{sizes.spread(clue.dims)}"] if clue.dims else []
    # Indices that run up to their own length are only good for an input of that length; those drawn are small.
    domain = known[0].domain if known and known[0].elements == "floating" else "normal"
    forms = [(form, domain) for form in written]
    forms += [(form, h.domain) for h in known for form in h.forms.split(", ")]
    forms += [(form, known[0].domain if known else "normal") for form in FLOATS.split(", ")]
    forms = [(form, clue.domain) for form, _ in forms] if clue.domain else forms
    wanted = kind or clue.declared.elements or (known[0].elements if known else "floating")
    if clue.gradient and not clue.declared.elements and wanted in ("integer", "bool"):
        wanted = "floating"
    main = not known and bool(clue.gradient)
    seen: list[str] = []
    for form, domain in forms:
        if form in seen:
            continue
        seen.append(form)
        rank = cost + (0 if len(seen) == 1 else 0.7 + 0.3 * len(seen)) + _unlikely(form, main)
        gradient = clue.gradient is not False and wanted in ("floating", "complex", "tensors")
        yield Proposal(rank, wanted, form, _drawn(wanted, domain), gradient=gradient, ndim=clue.ndim, least=clue.least)
        if not clue.gradient and not clue.declared.elements and kind is None and len(seen) <= 6:
            for i, other in enumerate(k for k in ("floating", "integer", "bool") if k != wanted):
                grad = other == "floating" and clue.gradient is not False
                drawn = _drawn(other, domain)
                yield Proposal(rank + 2 + i, other, form, drawn, gradient=grad, ndim=clue.ndim, least=clue.least)


def _unlikely(form: str, main: bool) -> float:
    """How much less likely a form is for an input that has a gradient and a name of no habit."""
    return (1.5 * (form in _LOW) + 3 * (form in _SINGLE)) if main else 0


def _drawn(kind: str, domain: str) -> str:
    """Domains are of floating values, except the one of indices."""
    return (
        domain if (kind == "integer") == (domain in ("reversed", "ramp")) or kind in ("bool", "complex") else "normal"
    )


def _shaped(clue: Clue, sizes: Sizes) -> Iterator[Proposal]:
    assert clue.declared.dims is not None
    elements = clue.declared.elements or "floating"
    domains = [h.domain for h in _habits(clue) if h.forms] or ["normal"]
    gradient = clue.gradient is not False and elements in ("floating", "complex")
    yield Proposal(0, elements, sizes.form(clue.declared.dims), domains[0], gradient=gradient)
    if clue.declared.optional:
        yield Proposal(3, value=None)


def _plain(clue: Clue, cost: float) -> Iterator[Proposal]:
    values: list[Any] = []
    if clue.default is not NOTHING:
        values += [clue.default, *([not clue.default] if isinstance(clue.default, bool) else [])]
    values += clue.constants
    for habit in _habits(clue):
        values += [v for v in habit.values if _fits(v, clue.declared)]
    values += _values(clue.declared)
    if clue.declared.optional:
        values.append(None)
    if clue.default is not NOTHING and clue.default is not None:
        values = [v for v in values if _like(v, clue.default)]
    trusted = 1.0 if clue.default is not NOTHING else 0.0  # what the author wrote is seldom what does not fit
    for rank, value in enumerate(values):
        yield Proposal(cost + (0 if rank == 0 else 0.7 + 0.3 * rank + trusted), value=value)


def _like(value: Any, default: Any) -> bool:
    """Whether a value is of the default's kind: a flag is never 0.7, a mode never a number."""
    if isinstance(default, (bool, str)) or isinstance(value, (bool, str)) or value is None:
        return type(value) is type(default)
    return not isinstance(default, int) or isinstance(value, (int, tuple))


def _fits(value: Any, declared: Value) -> bool:
    """Whether a value is one that an annotation allows."""
    if declared.options:
        return value in declared.options
    if declared.kind == "unknown" and declared.parts:
        return any(_fits(value, part) for part in declared.parts)
    wanted = _TYPES.get(declared.kind, object)
    return isinstance(value, wanted) and not (isinstance(value, bool) and declared.kind in ("int", "float", "number"))


def _values(declared: Value) -> tuple[Any, ...]:
    """Plain values that an annotation allows, the likeliest first."""
    if declared.options:
        return declared.options
    if declared.kind == "unknown" and declared.parts:
        return tuple(value for part in declared.parts if not part.is_tensor for value in _values(part))
    if declared.kind == "dict":
        key, value = (_values(part)[0] for part in declared.parts) if len(declared.parts) == 2 else ("a", 0.7)
        return {key: value}, {}
    if declared.kind in ("list", "tuple", "shape"):
        kind = tuple if declared.kind == "shape" else _TYPES[declared.kind]
        return tuple(kind(items) for items in _items(declared))
    return _PLAIN.get(declared.kind, _PLAIN["unknown"])


def _items(declared: Value) -> list[tuple[Any, ...]]:
    """What a list or tuple may hold: sizes, where nothing else is said; of a tuple each part by itself."""
    if not declared.parts or {part.kind for part in declared.parts} == {"int"}:
        count = len(declared.parts) if declared.kind == "tuple" and len(declared.parts) > 1 else 2
        return [(pair * count)[:count] for pair in _PAIRS]
    if declared.kind == "tuple" and len(declared.parts) > 1:
        return [tuple(_values(part)[0] for part in declared.parts)]
    inner = _values(declared.parts[0])
    if declared.parts[0] == UNKNOWN:  # of a class that nothing here knows
        return [(), inner[:2], inner[:1]]
    return [inner[:2], inner[:1], ()]


def _callables(clue: Clue) -> Iterator[Proposal]:
    for rank, function in enumerate(likely(clue.name, clue.called, applies=clue.applies)):
        yield Proposal(rank * 0.8, value=function)
    yield Proposal(1.0, value=torch.nn.Linear(4, 6).double())
    if clue.default is not NOTHING or clue.declared.optional:
        yield Proposal(0.5 if clue.gradient is False else 3, value=None if clue.default is NOTHING else clue.default)

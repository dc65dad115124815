"""What backward reads again, and others may change in the meantime: class attributes, globals, entries of dict arguments.

forward computed with one value. If somebody writes another one before backward runs, the gradient is that of no function. A
value that nothing writes after its definition is a constant, and is left alone.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.memory import kept
from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.subject.arguments import Leaf
from gradsmith.lab.subject.copies import Copies, copied
from gradsmith.lab.subject.target import backward_of, has_setup_context

_Change = Callable[[Copies], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class ReadAgain:
    """The gradient of `leaf` changes if `name` does between forward and backward; `writer` is what writes it."""

    leaf: Leaf
    name: str
    writer: str


@dataclass(frozen=True)
class _Place:
    """Where a value is kept: an attribute of `owner`, as the source spells it."""

    owner: Any
    attribute: str
    name: str
    writer: str


def read_again(lab: Lab) -> Iterator[ReadAgain]:
    """The values that forward used, and that backward looks up once more."""
    if lab.target.function is None:
        return
    for place in _written_by_others(lab.target.function):
        other = _other(getattr(place.owner, place.attribute, None))
        if other is not None:
            yield from _tried(lab, place.name, place.writer, lambda _, p=place, v=other: _set(p, v))  # type: ignore[misc]
    for number, argument in enumerate(copied(lab.precise[1]).args):
        for key, value in argument.items() if isinstance(argument, dict) else ():
            if (other := _other(value)) is not None:
                name = f"{_name(lab, number)}[{key!r}]"
                yield from _tried(lab, name, "", lambda given, n=number, k=key, v=other: _entry(given.args[n], k, v))  # type: ignore[misc]


def _tried(lab: Lab, name: str, writer: str, change: _Change) -> Iterator[ReadAgain]:
    try:
        given, outputs = _forward(lab)
        with change(given):
            after = _gradients(lab, given, outputs)
        again = copied(lab.precise[1])
        with change(again):
            elsewhere = _called(lab, again)
    except Exception:  # another value may not fit; what raises is seen by whoever writes it
        return
    if all(a.shape == b.shape and lab.close(a, b) for a, b in zip(outputs, elsewhere)):
        return  # forward does not use it: a control of the gradient alone
    for leaf in lab.precise[1].differentiable:
        if not lab.close(lab.baseline.gradients[leaf.position], after[leaf.position]):
            yield ReadAgain(leaf, name, writer)
            return


def _forward(lab: Lab) -> tuple[Copies, list[Tensor]]:
    given = copied(lab.precise[1])
    return given, _called(lab, given)


def _called(lab: Lab, given: Copies) -> list[Tensor]:
    seed_all(lab.settings.seed)
    return flat_outputs(lab.precise[0].call(*given.args, **given.kwargs))[0]


def _gradients(lab: Lab, given: Copies, outputs: list[Tensor]) -> dict[int, Tensor | None]:
    used = [o for o in lab.baseline.v if o < len(outputs) and outputs[o].requires_grad]
    v = [lab.baseline.v[o].clone() for o in used]
    found = gradients([outputs[o] for o in used], list(given.leaves.values()), v)
    return {position: kept(grad) for position, grad in zip(given.leaves, found)}


def _other(value: Any) -> Any:
    """Another value of the same kind; None for what has no obvious other one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.5 * value + 0.25
    if isinstance(value, Tensor) and value.is_floating_point():
        return (1.5 * value.detach() + 0.25).requires_grad_(value.requires_grad)
    return None


@contextlib.contextmanager
def _set(place: _Place, value: Any) -> Iterator[None]:
    before = vars(place.owner).get(place.attribute)
    setattr(place.owner, place.attribute, value)
    try:
        yield
    finally:
        setattr(place.owner, place.attribute, before)


@contextlib.contextmanager
def _entry(holder: dict[Any, Any], key: Any, value: Any) -> Iterator[None]:
    before = holder[key]
    holder[key] = value
    try:
        yield
    finally:
        holder[key] = before


def _name(lab: Lab, number: int) -> str:
    names = lab.target.names
    return names[number].rstrip("*") if number < len(names) else f"argument {number}"


def _written_by_others(cls: type[torch.autograd.Function]) -> list[_Place]:
    """What backward reads of its class and its file, and a function that is not forward writes."""
    backward = inspect.unwrap(backward_of(cls))
    code, scope = getattr(backward, "__code__", None), getattr(backward, "__globals__", {})
    home = sys.modules.get(cls.__module__)
    if code is None or home is None:
        return []
    own = [cls.forward, cls.setup_context] if has_setup_context(cls) else [cls.forward]
    mine = {getattr(inspect.unwrap(method), "__code__", None) for method in (*own, backward)}
    others = [(name, c, owner) for name, c, owner in _functions_of(home) if c not in mine]
    written = {spot: name for name, c, owner in others for spot in _touched(c, "STORE", owner)}
    found = []
    for first, attribute in _touched(code, "LOAD"):
        writer = written.get((first, attribute))
        owner: Any = scope.get(first) if attribute else home
        holds = isinstance(owner, type) or owner is home
        if writer is not None and holds and (attribute or first) in vars(owner):
            found.append(_Place(owner, attribute or first, f"{first}.{attribute}" if attribute else first, writer))
    return found


def _touched(code: types.CodeType, how: str, owner: str = "") -> Iterator[tuple[str, str]]:
    """`(Fn, alpha)` for each `Fn.alpha`, and `(alpha, "")` for each global, that the code loads or stores.

    `owner` is the class that a class method gets as its first argument: `cls.alpha` is one of its attributes.
    """
    steps = list(dis.get_instructions(code))
    for before, step in zip([None, *steps], steps):
        if step.opname == f"{how}_GLOBAL":
            yield step.argval, ""
        elif step.opname == f"{how}_ATTR" and before is not None:
            if before.opname == "LOAD_GLOBAL":
                yield before.argval, step.argval
            elif owner and before.opname.startswith("LOAD_FAST") and before.argval == code.co_varnames[0]:
                yield owner, step.argval
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _touched(part, how)


def _functions_of(home: types.ModuleType) -> Iterator[tuple[str, types.CodeType, str]]:
    """The functions and methods that a file defines, with their names; of a class method also the name of its class."""
    for name, value in list(vars(home).items()):
        if getattr(value, "__module__", None) != home.__name__:
            continue
        members = vars(value).items() if isinstance(value, type) else [("", value)]
        for member, method in members:
            plain = inspect.unwrap(getattr(method, "__func__", method))
            if isinstance(plain, types.FunctionType):
                yield f"{name}.{member}" if member else name, plain.__code__, name * isinstance(method, classmethod)

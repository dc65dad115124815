"""What code reads by name: globals, closure variables and the attributes that follow them, nested code included.

`torch.tanh(w.t())` reads the global `torch` and then its attribute `tanh`, and the global `w`; `t` is an attribute of an
object and no global. So attributes are kept only as the path that follows a name.
"""

from __future__ import annotations

import dis
import functools
import types
from dataclasses import dataclass
from typing import Any, NamedTuple

_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FREE = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# Ways around names: through these, code can reach values that no name in it leads to.
_REFLECTION = frozenset({
    "__abstractmethods__", "__annotations__", "__builtins__", "__constants__", "__loader__",
    "__slots__", "__spec__", "__closure__", "__code__", "__dataclass_fields__",
    "__defaults__", "__globals__", "__kwdefaults__", "__orig_bases__", "__parameters__", "__subclasses__",
    "__type_params__", "_abc_impl", "cell_contents", "cr_frame", "f_back", "f_globals", "f_locals", "gi_frame",
    "tb_frame",
})  # fmt: skip

Path = tuple[str, ...]


@dataclass(frozen=True)
class Reads:
    """Each path is a name and the attributes read from it at once: `torch.nn.functional.relu` has four words."""

    globals: tuple[Path, ...]
    free: tuple[Path, ...]
    attributes: frozenset[str]
    problem: str | None
    """Why names do not tell all that the code reads."""


@functools.lru_cache(maxsize=4096)
def reads_of(code: types.CodeType) -> Reads:
    outside: dict[Path, None] = {}
    free: dict[Path, None] = {}
    attributes: set[str] = set()
    problem: str | None = None
    for part in _nested(code):
        instructions = names_read(part)
        for at, (operation, name) in enumerate(instructions):
            if operation == "IMPORT_NAME":
                problem = f"imports {name} while it runs; import it at the top of the file"
            elif operation in _ATTRIBUTE:
                attributes.add(name)
            elif operation in _GLOBAL or operation in _FREE:
                path = [name]
                for following, attribute in instructions[at + 1 :]:
                    if following not in _ATTRIBUTE:
                        break
                    path.append(attribute)
                (free if operation in _FREE else outside)[tuple(path)] = None
                attributes.update(path[:1])  # `getattr` counts: it may read any attribute
        for name in sorted(_REFLECTION.intersection(part.co_names)):
            problem = f"reads {name}, through which it may see anything"
    return Reads(tuple(outside), tuple(free), frozenset(attributes), problem)


def names_read(code: types.CodeType) -> list[tuple[str, str]]:
    """The operations of `code` in order, and the name that each reads; "" for one that reads none.

    `dis` says the same, and takes four times as long: half of the time until a plan from disk is found.
    """
    forms, found, extended = _forms(), [], 0
    raw = code.co_code
    for operation, argument in zip(raw[::2], raw[1::2]):
        argument |= extended
        extended = argument << 8 if operation == dis.EXTENDED_ARG else 0
        form = forms[operation]
        if form is None:
            continue
        if form.shift is None:
            return _by_dis(code)
        found.append((form.name, code.co_names[argument >> form.shift] if form.shift >= 0 else ""))
    return found


def _by_dis(code: types.CodeType) -> list[tuple[str, str]]:
    """What `names_read` should give, slowly."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _SKIPPED]
    return [(i.opname, i.argval) if i.opname in _READING else (i.opname, "") for i in instructions]


_SKIPPED = frozenset({"CACHE", "PUSH_NULL", "EXTENDED_ARG"})
_READING = _GLOBAL | _FREE | _ATTRIBUTE | {"IMPORT_NAME"}
_NO_NAME = -1


class _Form(NamedTuple):
    name: str
    shift: int | None
    """How many bits of the argument stand below the index of the name; None if unknown, which only `dis` can read."""


@functools.cache
def _forms() -> list[_Form | None]:
    """By operation; None for one that is not looked at. Versions of Python differ, so the shifts are read off a sample."""
    forms: list[_Form | None] = [_Form(f"<{i}>", None) for i in range(256)]
    for name, number in dis.opmap.items():
        if number < len(forms):
            reading = name in _READING
            forms[number] = None if name in _SKIPPED else _Form(name, None if reading else _NO_NAME)
    fitting: dict[int, set[int]] = {}
    for instruction in dis.get_instructions(_sample):
        if instruction.opname in _READING and instruction.opname not in _FREE:
            index, argument = _sample.__code__.co_names.index(instruction.argval), instruction.arg or 0
            shifts = {shift for shift in range(4) if argument >> shift == index}
            fitting[instruction.opcode] = fitting.get(instruction.opcode, shifts) & shifts
    for number, shifts in fitting.items():
        if len(shifts) == 1:
            forms[number] = _Form(dis.opname[number], shifts.pop())
    return forms


def _sample(value: Any) -> Any:
    """Never called: with a dozen names, only one shift fits the indices of each operation."""
    value.a.b.c.d()
    import __future__

    return value.e, isinstance, len, str, value.f(), __future__


def _nested(code: types.CodeType) -> list[types.CodeType]:
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.extend(_nested(constant))
    return found

"""What code reads by name: globals, closure variables and the attributes that follow them, nested code included.

`torch.tanh(w.t())` reads the global `torch` and then its attribute `tanh`, and the global `w`; `t` is an attribute of an
object and no global. So attributes are kept only as the path that follows a name.
"""

from __future__ import annotations

import dis
import functools
import types
from dataclasses import dataclass

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
        instructions = [i for i in dis.get_instructions(part) if i.opname not in ("CACHE", "PUSH_NULL")]
        for at, instruction in enumerate(instructions):
            if instruction.opname == "IMPORT_NAME":
                problem = f"imports {instruction.argval} while it runs; import it at the top of the file"
            elif instruction.opname in _ATTRIBUTE:
                attributes.add(instruction.argval)
            elif instruction.opname in _GLOBAL or instruction.opname in _FREE:
                path = [instruction.argval]
                for following in instructions[at + 1 :]:
                    if following.opname not in _ATTRIBUTE:
                        break
                    path.append(following.argval)
                (free if instruction.opname in _FREE else outside)[tuple(path)] = None
                attributes.update(path[:1])  # `getattr` counts: it may read any attribute
        for name in sorted(_REFLECTION.intersection(part.co_names)):
            problem = f"reads {name}, through which it may see anything"
    return Reads(tuple(outside), tuple(free), frozenset(attributes), problem)


def _nested(code: types.CodeType) -> list[types.CodeType]:
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.extend(_nested(constant))
    return found

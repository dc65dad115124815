"""A key that means the same in every process: the content of all that a step can see.

`surroundings.look_around` has read everything into the key. Here it is written out: bytecode, constants, attributes,
array contents. What the key knows by identity is written by name, which is enough for classes (their content is in the
key besides) and for the functions of a library. Anything else makes a step unportable: it is captured anew.
"""

from __future__ import annotations

import functools
import hashlib
import types
from pathlib import Path
from typing import Any

import torch

from .library import is_library, is_stranger
from .surroundings import PLAIN, ById, LibraryFunction, LibrarySpace, Unread

_DESCRIPTORS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip


class Unportable(Exception):
    """Why a step must be captured anew in every process."""


def digest(key: object, held: list[object]) -> str:
    """A digest of a `Call.key`; raises Unportable for what cannot be told apart by content."""
    _refuse_strange_torch()
    writer = _Writer({id(thing): thing for thing in held})
    writer.write(key)
    return writer.hash.hexdigest()[:40]


@functools.cache
def own_source() -> str:
    """A digest of this package, native/ and ops/: cells and ops are part of what a step can see, the emitter of what a plan is."""
    own = Path(__file__).parent
    files = sorted([*own.glob("*.py"), *(own.parent / "native").glob("*.py"), *(own.parent / "ops").rglob("*.py")])
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _refuse_strange_torch() -> None:
    """torch is taken for what its version says; not if somebody has replaced parts of it."""
    for space in (torch, torch.nn.functional, torch.Tensor, torch.nn.Module):
        for name, value in vars(space).items():
            if isinstance(value, types.FunctionType) and is_stranger(value):
                raise Unportable(f"torch's {name} has been replaced")


class _Writer:
    def __init__(self, held: dict[int, object]) -> None:
        self.held = held
        self.hash = hashlib.sha256()

    def put(self, *words: object) -> None:
        for word in words:
            data = str(word).encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:" % len(data) + data)

    def write(self, thing: Any) -> None:
        kind = type(thing)
        if kind is ById:
            self._object(self.held[thing.address])
        elif kind is Unread:
            raise Unportable(thing.reason)
        elif kind is LibraryFunction:
            self.put("library", thing.module, getattr(thing.code, "co_qualname", thing.code.co_name))
            self.write(thing.parts)
        elif kind is LibrarySpace:
            self.put("class of a library", thing.module, thing.name, thing.signature)
            self.write(thing.strangers)
        elif kind is types.CodeType:
            self._code(thing)
        elif isinstance(thing, type):
            self.put("type", *_named(thing))
        elif kind in PLAIN:
            self.put(kind.__name__, repr(thing))
        elif kind is tuple or kind is frozenset:
            self.put(kind.__name__, len(thing))
            for item in sorted(thing, key=repr) if kind is frozenset else thing:
                self.write(item)
        else:
            raise Unportable(f"{kind.__name__} in the key")

    def _object(self, thing: Any) -> None:
        if isinstance(thing, type):
            self.put("class", *_named(thing))
        elif isinstance(thing, types.BuiltinFunctionType):
            self.put("builtin", thing.__module__, thing.__qualname__)
        elif isinstance(thing, _DESCRIPTORS):
            self.put("descriptor", *_named(thing.__objclass__), thing.__name__)
        elif is_library(type(thing).__module__):
            self.put("named", type(thing).__qualname__, str(thing))
        else:
            raise Unportable(f"a {type(thing).__name__} is known by identity only")

    def _code(self, code: types.CodeType) -> None:
        self.put("code", code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.put(code.co_code.hex(), getattr(code, "co_exceptiontable", b"").hex())
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self.put(len(names), *names)
        self.write(code.co_consts)


def _named(cls: type) -> tuple[str, ...]:
    """The names of a class and of what it inherits from; the content of the user's own is elsewhere in the key."""
    return tuple(f"{owner.__module__}.{owner.__qualname__}" for owner in cls.__mro__)

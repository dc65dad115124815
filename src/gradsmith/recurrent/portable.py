"""A key that means the same in every process: the content of all that a step can see.

Within a process, objects are told apart by identity. On disk, a plan may only be found again by a step that cannot
behave otherwise, so everything the key holds is written out: bytecode, constants, attributes, array contents. What
cannot be written out (an object of C, a generator), or could differ between two processes without showing in the
key (environment variables, files, the rank of a process), makes a step unportable: it is captured anew.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import types
from enum import Enum
from pathlib import Path
from typing import Any

import torch

from .surroundings import ById, LibraryFunction, LibraryModule, UserModule, is_library

# Libraries whose functions depend on their arguments alone, but for the names below.
_PURE = frozenset({
    "__future__", "_operator", "abc", "builtins", "cmath", "collections", "contextlib", "copy", "dataclasses", "enum",
    "functools", "itertools", "math", "numbers", "operator", "types", "typing", "warnings", "numpy",
    "torch", "torch._C", "torch._VF", "torch._jit_internal", "torch._tensor", "torch.autograd", "torch.fft",
    "torch.func", "torch.functional", "torch.linalg", "torch.nn", "torch.overrides", "torch.special", "torch.types",
    "torch.utils.checkpoint", "gradsmith.recurrent",
})  # fmt: skip
_PURE_PARENTS = ("numpy.", "torch._C.", "torch.nn.", "torch.autograd.", "gradsmith.recurrent.")
_PURE_TYPES = frozenset({"argparse.Namespace"})
_METACLASSES = frozenset({"type", "ABCMeta", "EnumMeta", "EnumType", "FunctionMeta", "_ParameterMeta", "_BufferMeta"})
# What a process knows and its key does not. A harmless attribute of the same name only costs the step its place on disk.
_PROCESS_STATE = frozenset({
    "environ", "getenv", "argv", "distributed", "get_rank", "get_world_size", "is_initialized", "is_available",
    "device_count", "backends", "get_num_threads", "get_num_interop_threads", "initial_seed", "cuda", "mps", "xpu",
    "accelerator", "__config__", "hub", "load", "memmap", "from_file", "fromfile", "loadtxt", "genfromtxt",
    "is_autocast_enabled", "get_autocast_dtype", "is_grad_enabled", "is_inference_mode_enabled", "get_default_device",
    "are_deterministic_algorithms_enabled", "get_float32_matmul_precision", "is_compiling", "is_scripting",
    "is_tracing", "current_stream", "__file__", "__subclasses__",
})  # fmt: skip
_SAFE_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "bytes", "callable", "classmethod", "complex", "dict", "divmod", "enumerate", "filter",
    "float", "frozenset", "getattr", "hasattr", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "object", "pow", "print", "property", "range", "repr", "reversed", "round", "set", "setattr", "slice",
    "sorted", "staticmethod", "str", "sum", "NotImplemented", "Ellipsis", "super", "tuple", "type", "zip", "__name__", "__doc__", "__build_class__",
})  # fmt: skip
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, range, type(...))


class Unportable(Exception):
    """Why a step must be captured anew in every process."""


def digest(key: object, held: list[object]) -> str:
    """A digest of a `Call.key`; raises Unportable for what cannot be told apart by content."""
    _refuse_strange_torch()
    writer = _Writer({id(thing): thing for thing in held})
    writer.write(key)
    if writer.modules and writer.getattr:
        raise Unportable("getattr may read any value of a module")
    return writer.hash.hexdigest()[:40]


@functools.cache
def own_source() -> str:
    """A digest of this package: its cells are part of what a step can see, and its emitter of what a plan is."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _refuse_strange_torch() -> None:
    """torch is taken for what its version says; not if somebody has replaced parts of it or listens in."""
    for space in (torch, torch.nn.functional, torch.Tensor, torch.nn.Module):
        for name, value in vars(space).items():
            if isinstance(value, types.FunctionType) and not is_library(value.__module__ or ""):
                raise Unportable(f"torch's {name} has been replaced")
    everywhere: Any = torch.nn.modules.module
    if everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks:
        raise Unportable("there are hooks on every module")
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        raise Unportable("a torch function or dispatch mode is active")


class _Writer:
    def __init__(self, held: dict[int, object]) -> None:
        self.held = held
        self.hash = hashlib.sha256()
        self.modules = False
        self.getattr = False

    def put(self, *words: object) -> None:
        for word in words:
            data = str(word).encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:" % len(data) + data)

    def write(self, thing: Any) -> None:
        if isinstance(thing, ById):
            self._object(self.held[thing.address])
        elif isinstance(thing, LibraryModule):
            self.put("import", _pure(thing.name))
        elif isinstance(thing, LibraryFunction):
            name = thing.code.co_name
            if name in _PROCESS_STATE:
                raise Unportable(f"{name} depends on the process")
            self.put("library", _pure(thing.module), thing.code.co_qualname if _HAS_QUALNAME else name)
            self.write(thing.cells)
        elif isinstance(thing, UserModule):
            self.modules = True
            self.put("module", thing.name)
            self.write(thing.values)
        elif isinstance(thing, types.CodeType):
            self._code(thing)
        elif isinstance(thing, type):
            self.put("type", *_named(thing))
        elif isinstance(thing, torch.Size) or not isinstance(thing, tuple | frozenset):
            if not isinstance(thing, _PLAIN):
                raise Unportable(f"{type(thing).__name__} in the key")
            self.put(type(thing).__name__, repr(thing))
        else:
            items = sorted(thing, key=repr) if isinstance(thing, frozenset) else thing
            self.put("(", len(thing))
            for item in items:
                self.write(item)

    def _object(self, thing: object) -> None:
        if isinstance(thing, type):
            self.put("class", *_named(thing))
        elif isinstance(thing, types.BuiltinFunctionType):
            owner = thing.__self__
            if not (owner is None or isinstance(owner, types.ModuleType | type)):
                raise Unportable(f"{thing.__name__} belongs to an object")
            if thing.__name__ in _PROCESS_STATE or (
                thing.__module__ == "builtins" and thing.__name__ not in _SAFE_BUILTINS
            ):
                raise Unportable(f"{thing.__name__} depends on the process")
            self.put("builtin", _pure(thing.__module__ or ""), thing.__qualname__)
        elif isinstance(thing, types.ModuleType) and is_library(thing.__name__):
            self.put("import", _pure(thing.__name__))
        elif isinstance(thing, Enum) and isinstance(thing.value, _PLAIN) and not _has_methods(type(thing)):
            self.put("enum", type(thing).__module__, type(thing).__qualname__, thing.name, repr(thing.value))
        else:
            raise Unportable(f"a {type(thing).__name__} is known by identity only")

    def _code(self, code: types.CodeType) -> None:
        _vet(code)
        self.getattr = self.getattr or "getattr" in code.co_names
        self.put("code", code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.put(code.co_code.hex(), getattr(code, "co_exceptiontable", b"").hex())
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self.put(len(names), *names)
        self.write(code.co_consts)


_HAS_QUALNAME = hasattr(types.CodeType, "co_qualname")


def _has_methods(cls: type) -> bool:
    return any(hasattr(value, "__get__") and not name.startswith("_") for name, value in vars(cls).items())


@functools.lru_cache(maxsize=4096)
def _vet(code: types.CodeType) -> None:
    """Refuse code that reads what the key does not hold."""
    if dis.opmap["IMPORT_NAME"] in code.co_code[::2]:
        raise Unportable(f"{code.co_name} imports while it runs")
    suspects = {name for name in code.co_names if name in vars(builtins) and not _is_safe(name)}
    if suspects:
        # `self.eval()` is a method, `eval(...)` is not.
        loaded = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        for name in sorted(suspects & loaded):
            raise Unportable(f"{code.co_name} uses {name}()")
    for name in code.co_names:
        if name in _PROCESS_STATE:
            raise Unportable(f"{code.co_name} reads {name}, which depends on the process")


def _is_safe(name: str) -> bool:
    known = vars(builtins)[name]
    return name in _SAFE_BUILTINS or (isinstance(known, type) and issubclass(known, BaseException))


def _pure(module: str) -> str:
    if module in _PURE or module.startswith(_PURE_PARENTS):
        return module
    raise Unportable(f"{module} may depend on the process")


def _named(cls: type) -> tuple[str, ...]:
    """The names of a class and of what it inherits from; the content of the user's own is elsewhere in the key."""
    names = tuple(f"{owner.__module__}.{owner.__qualname__}" for owner in cls.__mro__)
    if type(cls).__name__ not in _METACLASSES:
        raise Unportable(f"{names[0]} has a metaclass of its own")
    for owner, name in zip(cls.__mro__, names):
        if is_library(owner.__module__):
            if name not in _PURE_TYPES:
                _pure(owner.__module__)
        elif vars(owner).get("__slots__"):
            raise Unportable(f"{name} keeps values in slots")
    return names

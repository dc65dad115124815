"""What is taken for granted about torch, NumPy and the standard library, and how a change of it is noticed.

Their code is covered by their version and is not walked. That holds only while it is their own code: a function that
somebody has put in its place (`F.linear = mine`, `nn.Linear.forward = mine`, a new `__code__`) is found, and seen.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import sys
import sysconfig
import types
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from gradsmith.source.knowledge import NUMPY_STATE

from .bytecode import reads_of

# Libraries whose functions and objects depend on their arguments alone.
_PURE = frozenset({
    "__future__", "_abc", "_collections", "_collections_abc", "_functools", "_operator", "abc", "argparse", "builtins",
    "cmath", "collections", "collections.abc", "contextlib", "copy", "copyreg", "dataclasses", "enum", "fractions", "functools", "itertools",
    "math", "numbers", "operator", "reprlib", "types", "typing", "warnings", "numpy",
    "torch", "torch._C", "torch._VF", "torch._jit_internal", "torch._tensor", "torch.autograd", "torch.fft",
    "torch.func", "torch.functional", "torch.linalg", "torch.nn", "torch.overrides", "torch.special", "torch.types",
    "torch.utils._contextlib", "torch.utils._pytree", "torch.utils.checkpoint", "gradsmith.recurrent",
    "gradsmith.lab.subject.declarations",
})  # fmt: skip
_PURE_PARENTS = (
    "numpy.",
    "torch._C.",
    "torch.nn.",
    "torch.autograd.",
    "gradsmith.native.",
    "gradsmith.ops.",
    "gradsmith.recurrent.",
)
_SAFE_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "bytes", "callable", "classmethod", "complex", "dict", "divmod", "enumerate", "filter",
    "float", "format", "frozenset", "getattr", "hasattr", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "object", "pow", "print", "property", "range", "repr", "reversed", "round", "set", "setattr", "slice",
    "sorted", "staticmethod", "str", "sum", "NotImplemented", "Ellipsis", "super", "tuple", "type", "zip", "__name__", "__doc__",
    "__build_class__", "__debug__",
})  # fmt: skip
# torch's functions that are no operations: most report a setting of the process. These do not, or the key has it.
_SETTLED = frozenset({"get_default_dtype", "is_tensor", "is_storage", "sym_max", "sym_min", "sym_int", "sym_float"})
# Modules of Python code that computes with tensors by calling other functions.
_NUMERIC = ("torch.nn.", "gradsmith.native.", "gradsmith.ops.", "gradsmith.recurrent.")
# What Python and torch keep on classes for themselves; code that names one of them is not planned (see bytecode.py).
CLASS_NOISE = frozenset({
    "__abstractmethods__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__builtins__",
    "__constants__", "__dataclass_fields__", "__dataclass_params__", "__dict__", "__firstlineno__", "__loader__",
    "__module__", "__orig_bases__", "__parameters__", "__qualname__", "__slotnames__", "__slots__", "__spec__",
    "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl", "_backward_cls",
})  # fmt: skip
HEAP_TYPE = 1 << 9


class _Missing:
    """No value; a class, so that it is itself in every copy."""


@functools.lru_cache(maxsize=4096)
def is_library(module: str) -> bool:
    top = module.partition(".")[0]
    return top in {"torch", "numpy", "functorch", "gradsmith"} or (top in sys.stdlib_module_names and top != "__main__")


class _Folders(NamedTuple):
    """Where the code of libraries is; `others` are inside `standard` and hold other people's code."""

    packages: tuple[str, ...]
    standard: tuple[str, ...]
    others: tuple[str, ...]


@functools.cache
def _folders() -> _Folders:
    paths = sysconfig.get_paths()
    packages = [os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__))]
    numpy = sys.modules.get("numpy")
    if numpy is not None and numpy.__file__ is not None:
        packages.append(os.path.dirname(numpy.__file__))
    standard = [paths["stdlib"], paths["platstdlib"]]
    others = [paths["purelib"], paths["platlib"], os.path.join(paths["stdlib"], "site-packages")]

    def folders(names: list[str]) -> tuple[str, ...]:
        return tuple({os.path.join(os.path.abspath(name), "") for name in names})

    # torch decorates some of its methods with functions of this one file.
    decorators = getattr(sys.modules.get("typing_extensions"), "__file__", None)
    return _Folders((*folders(packages), *([decorators] if decorators else [])), folders(standard), folders(others))


@functools.lru_cache(maxsize=4096)
def is_library_file(name: str) -> bool:
    """Whether code of this file is the library's. The name of a function's module proves nothing: `wraps` copies it."""
    if name.startswith("<frozen "):
        return True
    known = _folders()
    return name.startswith(known.packages) or (name.startswith(known.standard) and not name.startswith(known.others))


@functools.lru_cache(maxsize=4096)
def is_library_class(cls: type) -> bool:
    """Whether a class is what its module has under its name; a class may call itself what it likes."""
    if not is_library(cls.__module__):
        return False
    found: Any = sys.modules.get(cls.__module__)
    for word in cls.__qualname__.split("."):
        found = getattr(found, word, None)
    return found is cls or not cls.__flags__ & HEAP_TYPE or cls.__module__ == "builtins"


def is_pure(module: str) -> bool:
    return module in _PURE or module.startswith(_PURE_PARENTS)


@functools.lru_cache(maxsize=4096)
def impurity(function: Any) -> str | None:
    """Why the results of a library's function may depend on more than its arguments; None if they do not."""
    name, module = function.__name__, function.__module__ or ""
    if isinstance(function, types.FunctionType):
        module = function.__globals__.get("__name__", "")  # a decorator's result has the name of what it decorates
    owner = getattr(function, "__self__", None)
    if isinstance(owner, types.ModuleType):
        module = owner.__name__
    elif isinstance(owner, type):
        module = owner.__module__
    if module == "builtins" and not isinstance(owner, type):
        return None if name in _SAFE_BUILTINS else f"{name}() sees more than its arguments"
    if not is_pure(module):
        return f"{module}.{name}() may depend on the process"
    settings = module in ("torch", "torch._C") and (isinstance(function, types.FunctionType) or owner is not None)
    if (settings and name not in _SETTLED) or (module.startswith("numpy") and name in NUMPY_STATE):
        return f"{module}.{name}() reads a setting of the process"
    if module.startswith("numpy.random"):
        return f"{module}.{name}() draws random numbers"
    return None


def is_safe_builtin(name: str, value: object) -> bool:
    return value is _BUILTINS.get(name)


_BUILTINS = {
    name: value
    for name, value in vars(sys.modules["builtins"]).items()
    if name in _SAFE_BUILTINS or (isinstance(value, type) and issubclass(value, BaseException))
}


class Place(NamedTuple):
    """A name of a library's module that its code reads, and the function that belongs there."""

    space: dict[str, Any]
    name: str
    own: object


@dataclass(frozen=True)
class Places:
    """All places that functions of a library read functions from, also through the functions they find there."""

    all: tuple[Place, ...]
    aliases: tuple[str, ...]
    """Functions that stand there under another name than their own: some are meant to, others may have been put there."""
    by_space: tuple[tuple[dict[str, Any], tuple[str, ...], tuple[object, ...]], ...]
    """The same places once more, as the names in each module and what belongs there: they are looked at in every call, with
    caches that hold something else, where what is touched counts and not what is done."""

    @staticmethod
    def of(found: dict[tuple[int, str], Place]) -> Places:
        own = [(place.name, getattr(place.own, "__name__", "")) for place in found.values()]
        groups: dict[int, list[Place]] = {}
        for place in found.values():
            groups.setdefault(id(place.space), []).append(place)
        by_space = tuple((g[0].space, tuple(p.name for p in g), tuple(p.own for p in g)) for g in groups.values())
        return Places(tuple(found.values()), tuple(f"{name}={real}" for name, real in own if name != real), by_space)

    def changed(self) -> list[tuple[str, dict[str, Any]]]:
        """The places where something else stands now, and the modules they are in."""
        return [
            (name, space)
            for space, names, owns in self.by_space
            if not all(map(operator.is_, map(space.get, names), owns))
            for name, own in zip(names, owns)
            if space.get(name) is not own
        ]


@functools.lru_cache(maxsize=4096)
def places(code: types.CodeType, module: str) -> Places:
    found: dict[tuple[int, str], Place] = {}
    _places(code, module, found)
    return Places.of(found)


def _places(code: types.CodeType, module: str, found: dict[tuple[int, str], Place]) -> None:
    # How torch calls a mode is not what the step computes.
    owner = sys.modules.get(module)
    if owner is None or not (module.startswith(_NUMERIC) or module in ("torch.functional", "torch._tensor")):
        return
    for path in reads_of(code).globals:
        space: dict[str, Any] = vars(owner)
        for name in path:
            value = space.get(name, _Missing)
            if isinstance(value, types.ModuleType):
                found[id(space), name] = Place(space, name, value)
                space = vars(value)
                continue
            if (id(space), name) not in found and isinstance(value, types.FunctionType | types.BuiltinFunctionType):
                genuine = isinstance(value, types.BuiltinFunctionType) or not is_stranger(value)
                found[id(space), name] = Place(space, name, value if genuine else _Missing)
                if genuine and isinstance(value, types.FunctionType):
                    _places(value.__code__, value.__module__, found)
            break


class Content:
    """What a class or module of a library consists of now; read again only if something of it was replaced."""

    def __init__(self, space: Any) -> None:
        self.space = space
        self.read()

    def now(self) -> Content:
        try:
            same = tuple(vars(self.space).values()) == self.values
        except Exception:  # an __eq__ that gives no truth value: so it is another value
            same = False
        if not same or [function.__code__ for function in self.functions] != self.codes:
            self.read()
        return self

    def read(self) -> None:
        values = dict(vars(self.space))
        self.values = tuple(values.values())
        plain = {name: _unwrapped(value) for name, value in values.items() if name not in CLASS_NOISE}
        functions = {name: v for name, v in plain.items() if isinstance(v, types.FunctionType)}
        self.functions = list(functions.values())
        self.codes = [function.__code__ for function in self.functions]
        self.strangers = [(name, value) for name, value in plain.items() if not _belongs(value)]
        content = hashlib.sha256("\0".join(sorted(f"{n}={_title(v)}" for n, v in plain.items())).encode())
        for function in self.functions:
            content.update(function.__code__.co_code)
        self.signature = content.hexdigest()
        found = {
            (id(place.space), place.name): place
            for name, function in functions.items()
            if not name.startswith("__") and is_library_file(function.__code__.co_filename)
            for place in places(function.__code__, function.__module__).all
        }
        self.places = Places.of(found)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return value.fget if type(value) is property and value.fset is None else value


def _title(value: Any) -> str:
    if type(value) in _VALUES:
        return repr(value)
    return f"{type(value).__qualname__} {getattr(value, '__qualname__', '')}"


def _belongs(value: Any) -> bool:
    """Whether a value of a library's class or module is known by its title, as the library's own."""
    kind = type(value)
    if kind is types.FunctionType:
        return not is_stranger(value)
    if isinstance(value, type):
        return is_library(value.__module__)
    # Python code can do nothing with a capsule but hand it on.
    capsule = kind.__module__ == "builtins" and kind.__name__ == "PyCapsule"
    return (
        kind in _VALUES
        or kind in _NAMED
        or capsule
        or isinstance(value, types.ModuleType)
        or kind.__module__ == "typing"
    )


_VALUES = frozenset({bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device})
_NAMED = frozenset({
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, types.ClassMethodDescriptorType,
})  # fmt: skip


def is_stranger(function: types.FunctionType, depth: int = 0) -> bool:
    """Whether a function, or one it wraps, is not the library's."""
    # A few functions of torch's and Python's own classes are made from text.
    code = function.__code__
    if not is_library_file(code.co_filename) and not (
        code.co_filename == "<string>" and is_library(function.__module__ or "")
    ):
        return True
    for cell in function.__closure__ or ():
        try:
            inner = cell.cell_contents
        except ValueError:
            continue
        if isinstance(inner, types.FunctionType) and depth < 4 and is_stranger(inner, depth + 1):
            return True
    return False


_contents: dict[Any, Content] = {}


def content_of(space: Any) -> Content | None:
    """The content of a library's class or module; None for classes of C that cannot be changed."""
    known = _contents.get(space)
    if known is not None:
        return known.now()
    if isinstance(space, type) and not space.__flags__ & HEAP_TYPE:
        return None
    _contents[space] = made = Content(space)
    return made


@functools.cache
def hook_names() -> frozenset[str]:
    """The dicts in which a module keeps its hooks."""
    return frozenset(name for name in vars(torch.nn.Module()) if "hooks" in name)


def interference() -> str | None:
    """Why torch itself now does something else than its functions say, in a way that is not part of any key."""
    everywhere: Any = torch.nn.modules.module
    if everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks:
        return "there are forward hooks on every module"
    if everywhere._global_backward_hooks or everywhere._global_backward_pre_hooks:
        return "there are backward hooks on every module"
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return "a torch function mode or dispatch mode is active (a default device is one)"
    return None

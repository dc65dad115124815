"""What a step can see besides its arguments, and whether every bit of it is in the key.

A plan bakes in Python values (a leak of 0.9, `self.training`) and must read tensors anew at every call. So each
call walks what the step can see: values go into a key that the plan is stored under, tensors into a list. A value
is read in full, by exact type, or the walk says why it cannot be: such a step is never planned, and runs as a loop.
Nothing is taken by identity that could change and stay the same object.

Walking costs 10-150 microseconds; a step made anew at every call (a lambda) finds the plan of its predecessor.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import importlib
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import torch

from . import library
from .bytecode import Path, reads_of

PLAIN = frozenset({
    bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, torch.layout,
    torch.memory_format, range, type(...), type(NotImplemented),
})  # fmt: skip
_WRITTEN = frozenset({float, complex})  # -0.0 == 0.0, and nan is not itself
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
_MODULE_NOISE = frozenset(
    {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook"}
)
_abc_dump: Any = importlib.import_module("_abc")._get_dump  # the classes registered with an abstract one
_MAX_DEPTH = 40
_MAX_ITEMS = 2048
_MAX_THINGS = 10_000
_MAX_BYTES = 1 << 20
_MANAGED_DICT = 1 << 4
_POINTER = object.__basicsize__ // 2


class ById(NamedTuple):
    """An object that counts as the same only if it is the same object; `Surroundings.held` has it."""

    address: int


class Unread(NamedTuple):
    """Stands for a value that is not in the key."""

    reason: str


class LibraryFunction(NamedTuple):
    """A function of a library: known by its name, but its closure may hold the user's objects."""

    module: str
    code: types.CodeType
    parts: Any


class LibrarySpace(NamedTuple):
    """A class or module of a library, with a digest of its content, and what in it is not the library's own."""

    module: str
    name: str
    signature: str
    strangers: Any


@dataclass
class Surroundings:
    """The key of all Python values a step can see, and the tensors among them with their names."""

    key: tuple[Any, ...] = ()
    handed: Any = None
    """The key of the structures that x, state and params come in, and of their classes."""
    tensors: list[torch.Tensor] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    held: list[object] = field(default_factory=list)
    """Objects that the key knows by identity: kept alive, so that an id is never reused."""
    unread: str | None = None
    """What the step can see and the key does not hold, in words. Such a step is never planned."""


def look_around(step: object, structures: Any = None) -> Surroundings:
    """What `step` can see; `structures` are the types and keys of what it is handed."""
    walk = Walk()
    found = walk.found
    try:
        found.key = (walk.see(step, "step", 0), walk.watched(torch.Tensor, 0))
        found.handed = walk.see(structures, "the type of an argument", 0)
        for name, reason in walk.unreadable.items():
            if name in walk.named or "getattr" in walk.named:
                raise CannotRead(reason)
    except CannotRead as reason:
        found.unread = str(reason)
        found.key = (Unread(found.unread),)
    return found


class CannotRead(Exception):
    """Ends a walk: one value that is not in the key is enough."""


class Walk:
    def __init__(self) -> None:
        self.found = Surroundings()
        self.seen: dict[int, int] = {}
        self.owners: dict[type, None] = {torch.Tensor: None}
        self.named: dict[str, None] = {}
        self.unreadable: dict[str, str] = {}

    def see(self, thing: Any, path: str, depth: int) -> Any:
        kind = type(thing)
        if kind in PLAIN:
            return (kind, repr(thing) if kind in _WRITTEN else thing)
        known = self.seen.get(id(thing))
        if known is not None:
            return ("again", known)
        self.seen[id(thing)] = len(self.seen)
        if depth > _MAX_DEPTH or len(self.seen) > _MAX_THINGS:
            raise CannotRead(f"there is too much to read at every call (reached {path}, {depth} levels deep)")
        reader = _READERS.get(kind)
        if reader is not None:
            return getattr(self, reader)(thing, path, depth)
        if issubclass(kind, torch.Tensor):
            raise CannotRead(f"{path} is a {kind.__name__}, not a plain tensor")
        if issubclass(kind, type):
            return self._class(thing, path, depth)
        if issubclass(kind, types.ModuleType):
            return self._module(thing, path, depth)
        if kind.__module__ == "numpy":
            return self._numpy(thing, path)
        return self._instance(thing, path, depth)

    def _by_identity(self, thing: object, *_: Any) -> ById:
        """Only for what cannot change: classes (whose content is read besides), functions of C, descriptors of C."""
        self.found.held.append(thing)
        return ById(id(thing))

    def _tensor(self, tensor: torch.Tensor, path: str, depth: int) -> Any:
        self.found.tensors.append(tensor)
        self.found.names.append(path)
        own = self._items(tensor.__dict__, path, depth) if tensor.__dict__ else None
        return ("tensor", type(tensor), tuple(tensor.shape), tensor.dtype, tensor.requires_grad, tensor.device, own)

    # -- functions

    def _function(self, function: types.FunctionType, path: str, depth: int) -> Any:
        code = function.__code__
        parts = [
            self.see(part, path, depth + 1) if part else None
            for part in (function.__defaults__, function.__kwdefaults__, function.__dict__)
        ]
        if library.is_library_file(code.co_filename):
            reason = library.impurity(function)
            if reason is not None:
                raise CannotRead(reason)
            parts += [self._cells(function, path, depth), self.places(library.places(code, function.__module__), depth)]
            return LibraryFunction(function.__module__, code, tuple(parts))
        reads = reads_of(code)
        self.named.update(dict.fromkeys(reads.attributes))
        if reads.problem is not None:
            raise CannotRead(f"{code.co_name} {reads.problem}")
        parts.append(self._cells(function, path, depth))
        space: dict[str, Any] = function.__globals__
        builtins: dict[str, Any] = cast(Any, function).__builtins__
        for name in reads.globals:
            root = name[0]
            if root in space:
                parts.append((name, self._resolve(space[root], name, depth)))
            elif root in builtins:
                value = builtins[root]
                if not library.is_safe_builtin(root, value):
                    parts.append((name, self._resolve(value, name, depth)))
        titles = (function.__name__, function.__qualname__, function.__module__, function.__doc__)
        return ("function", code, *(self.see(title, path, depth) for title in titles), tuple(parts))

    def _cells(self, function: types.FunctionType, path: str, depth: int) -> Any:
        cells: list[Any] = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:
                cells.append("empty")
                continue
            if issubclass(type(value), types.ModuleType):
                paths = [read for read in reads_of(function.__code__).free if read[0] == name]
                cells.append(tuple((read, self._resolve(value, read, depth)) for read in paths))
            else:
                cells.append(self.see(value, name, depth + 1))
        return tuple(cells)

    def _resolve(self, value: Any, name: Path, depth: int) -> Any:
        """`settings.leak`, `package.settings.leak`: what is read from a module by name."""
        at = 1
        while issubclass(type(value), types.ModuleType) and at < len(name):
            module, inside = value, vars(value)
            word = name[at]
            if word in inside:
                value = inside[word]
            elif library.is_library(module.__name__) or hasattr(types.ModuleType, word):
                value = getattr(module, word, None)
            elif type(module) is types.ModuleType and "__getattr__" not in inside:
                return "missing"
            else:
                raise CannotRead(f"{'.'.join(name[: at + 1])} is computed by the module when it is read")
            at += 1
        return self.see(value, ".".join(name[:at]), depth + 1)

    def places(self, places: library.Places, depth: int) -> Any:
        """What stands now where a library's code reads its own functions, wherever that is something else."""
        now = tuple((name, self.see(space.get(name), name, depth + 1)) for name, space in places.changed())
        return (places.aliases, now) if now else places.aliases

    def _method(self, method: types.MethodType, path: str, depth: int) -> Any:
        return ("method", self.see(method.__func__, path, depth + 1), self.see(method.__self__, path, depth + 1))

    def _partial(self, partial: functools.partial[Any], path: str, depth: int) -> Any:
        parts = (partial.func, partial.args, partial.keywords, partial.__dict__)
        return ("partial", tuple(self.see(part, path, depth + 1) for part in parts))

    def _builtin(self, function: types.BuiltinFunctionType, path: str, depth: int) -> Any:
        owner = function.__self__
        if not (owner is None or isinstance(owner, types.ModuleType | type)):
            return ("bound", function.__name__, self.see(owner, path, depth + 1))
        reason = library.impurity(function)
        if reason is not None:
            raise CannotRead(reason)
        return self._by_identity(function)

    def _operator(self, operator: Any, path: str, depth: int) -> Any:
        if operator.__module__.startswith(("torch._ops.aten", "torch._ops.prims", "torch.ops.aten", "torch.ops.prims")):
            return self._by_identity(operator)
        raise CannotRead(f"{path} is a custom operator, whose implementation may be replaced")

    def _module(self, module: types.ModuleType, path: str, depth: int) -> Any:
        """A module as a value (`getattr(F, name)`, `self.config = settings`): any of its values may be read."""
        name = module.__name__
        if name in ("torch.nn.functional", "math"):
            return self.watched(module, depth)
        if library.is_library(name) or type(module) is not types.ModuleType or "__getattr__" in vars(module):
            raise CannotRead(f"{path} is the module {name} as a value; read what you need from it by name")
        return ("module", name, self._items(vars(module), path, depth))

    # -- values

    def _items(self, values: dict[str, Any], path: str, depth: int) -> Any:
        if len(values) > _MAX_ITEMS:
            raise CannotRead(f"{path} has {len(values)} items, too many to read at every call")
        return tuple(
            (name, self.see(value, f"{path}.{name}", depth + 1))
            for name, value in values.items()
            if not (name.startswith("__") and name in _SPACE_NOISE)
        )

    def _slice(self, thing: slice, path: str, depth: int) -> Any:
        return ("slice", tuple(self.see(part, path, depth + 1) for part in (thing.start, thing.stop, thing.step)))

    def _dict(self, thing: dict[Any, Any], path: str, depth: int) -> Any:
        if len(thing) > _MAX_ITEMS:
            raise CannotRead(f"{path} has {len(thing)} items, too many to read at every call")
        pairs = dict.items(thing)
        return (
            dict,
            tuple((self.see(k, path, depth + 1), self.see(v, f"{path}[{k!r}]", depth + 1)) for k, v in pairs)
            if all(type(k) in PLAIN for k in dict.keys(thing))
            else tuple((self.see(k, path, depth + 1), self.see(v, path, depth + 1)) for k, v in pairs),
        )

    def _sequence(self, thing: Any, path: str, depth: int, kind: Any = None) -> Any:
        """Lists, tuples, queues; and sets in the order in which a loop meets their elements."""
        kind = kind or type(thing)
        if kind.__len__(thing) > _MAX_ITEMS:
            raise CannotRead(f"{path} has {kind.__len__(thing)} items, too many to read at every call")
        limit = (thing.maxlen,) if kind is deque else ()
        return (kind, *limit, tuple(self.see(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(kind.__iter__(thing))))

    def _numpy(self, thing: Any, path: str) -> Any:
        import numpy as np

        if isinstance(thing, np.ufunc) or type(thing).__name__ == "_ArrayFunctionDispatcher":
            reason = library.impurity(thing) if hasattr(thing, "__module__") else None
            if reason is not None:
                raise CannotRead(reason)
            return ("numpy", thing.__name__, self._by_identity(thing))
        if isinstance(thing, np.dtype) and not thing.hasobject:
            return ("dtype", str(thing))
        if type(thing) is np.ndarray or isinstance(thing, np.generic):
            if thing.nbytes > _MAX_BYTES or thing.dtype.hasobject:
                raise CannotRead(f"{path} is an array that is too large to read at every call, or of objects")
            content = hashlib.sha256(thing.tobytes()).digest()
            return ("numpy", type(thing).__name__, thing.shape, thing.strides, str(thing.dtype), content)
        raise CannotRead(f"{path} is a NumPy {type(thing).__name__}")

    def _instance(self, thing: Any, path: str, depth: int) -> Any:
        cls: type = type(thing)
        layout = layout_of(cls)
        if not layout.readable:
            raise CannotRead(f"{path} is a {cls.__module__}.{cls.__qualname__}, whose content cannot be read")
        parts: list[Any] = [self.see(cls, path, depth + 1)]
        if layout.content is not None:
            parts.append(layout.content(self, thing, path, depth))
        for descriptor in layout.slots:
            try:
                value = descriptor.__get__(thing, cls)
            except AttributeError:
                parts.append("empty")
            else:
                parts.append(self.see(value, f"{path}.{descriptor.__name__}", depth + 1))
        values: dict[str, Any] | None = getattr(thing, "__dict__", None)
        if values is None:
            return tuple(parts)
        see = self.see
        below = depth + 1
        if not isinstance(thing, torch.nn.Module):
            parts.append(self._items(values, path, depth))
            return tuple(parts)
        for group in (thing._parameters, thing._buffers, thing._modules):
            if type(group) is not dict and type(group) is not collections.OrderedDict:
                raise CannotRead(f"{path} keeps its parameters in a {type(group).__name__}")
            for name, value in group.items():
                parts.append((name, see(value, f"{path}.{name}", below)))
        hooks = library.hook_names()
        for name, value in values.items():
            if name not in _MODULE_NOISE and (name not in hooks or value):
                parts.append((name, see(value, f"{path}.{name}", below)))
        return tuple(parts)

    # -- classes

    def _class(self, cls: type, path: str, depth: int) -> Any:
        """Methods and values of a class and of those it inherits from."""
        parts: list[Any] = [self._by_identity(cls), cls.__name__, cls.__qualname__, str(cls.__module__)]
        if not cls.__flags__ & library.HEAP_TYPE:
            return parts[0]
        if type(cls) is not type:
            parts.append(self.see(type(cls), path, depth + 1))
        for owner in cls.__mro__:
            if owner in self.owners:
                continue
            self.owners[owner] = None
            if library.is_library_class(owner):
                if not library.is_pure(owner.__module__):
                    name = f"{owner.__module__}.{owner.__qualname__}"
                    raise CannotRead(f"{path} is a {name}, which may depend on the process")
                parts.append(self.watched(owner, depth))
            else:
                parts.append(self._own_class(owner, path, depth))
        return tuple(parts)

    def watched(self, space: Any, depth: int) -> Any:
        """A class or module of a library: nothing, unless it can be changed."""
        content = library.content_of(space)
        if content is None:
            return None
        strangers = [
            (name, self.see(value, f"{space.__name__}.{name}", depth + 1)) for name, value in content.strangers
        ]
        return LibrarySpace(
            space.__module__ if isinstance(space, type) else "",
            space.__name__,
            content.signature,
            (*strangers, self.places(content.places, depth)),
        )

    def _own_class(self, owner: type, path: str, depth: int) -> Any:
        found: list[Any] = []
        values = vars(owner)
        for name, value in values.items():
            if name in library.CLASS_NOISE:
                continue
            if name == "__repr__" and hasattr(value, "__wrapped__") and "__dataclass_fields__" in values:
                value = value.__wrapped__  # guarded against recursion by the id of its object, in a set of its own
            found.append((name, self._member(owner, name, value, depth)))
        if "_abc_impl" in values:
            registered = [reference() for reference in _abc_dump(owner)[0]]
            found += sorted(self._by_identity(cls) for cls in registered if cls is not None)
        return tuple(found)

    def _member(self, owner: type, name: str, value: Any, depth: int) -> Any:
        """A method that cannot be read matters only if some code names it: `save` may open a file, for all we care."""
        tables: tuple[dict[Any, Any], ...] = (self.seen, self.owners, self.named)
        lists: tuple[list[Any], ...] = (self.found.tensors, self.found.names, self.found.held)
        before = [len(part) for part in (*tables, *lists)]
        try:
            return self.see(value, f"{owner.__name__}.{name}", depth + 1)
        except CannotRead as reason:
            # A step that makes a module draws its weights, and is refused for that; one that calls hash(), too, and
            # where Python itself asks for a hash (a frozen dataclass as a key), only equality decides.
            settled = name == "__hash__" or (name == "__init__" and issubclass(owner, torch.nn.Module))
            if type(value) is not types.FunctionType or (name.startswith("__") and not settled):
                raise
            if not settled:
                self.unreadable[name] = str(reason)
        # What was seen on the way was not seen to its end.
        for table, length in zip(tables, before):
            for key in list(table)[length:]:
                del table[key]
        for part, length in zip(lists, before[len(tables) :]):
            del part[length:]
        return ("not read", value.__code__)

    def _property(self, thing: property, path: str, depth: int) -> Any:
        return ("property", tuple(self.see(part, path, depth + 1) for part in (thing.fget, thing.fset, thing.fdel)))

    def _wrapped_method(self, thing: Any, path: str, depth: int) -> Any:
        return (type(thing), self.see(thing.__func__, path, depth + 1))

    def _field(self, thing: Any, path: str, depth: int) -> Any:
        return ("field of a named tuple", thing.__reduce__()[1][0])

    def _cached_property(self, thing: Any, path: str, depth: int) -> Any:
        return ("cached", self.see(thing.func, path, depth + 1), thing.attrname)


# A module's description of itself, and what Python puts beside it.
_SPACE_NOISE = frozenset(
    {"__builtins__", "__loader__", "__spec__", "__cached__", "__annotations__", "__warningregistry__"}
)

_Reader = Callable[[Walk, Any, str, int], Any]
_READERS: dict[type, str] = {
    types.FunctionType: "_function",
    types.MethodType: "_method",
    types.BuiltinFunctionType: "_builtin",
    functools.partial: "_partial",
    functools.cached_property: "_cached_property",
    property: "_property",
    type(vars(collections.namedtuple("_Pair", "a"))["a"]): "_field",
    staticmethod: "_wrapped_method",
    classmethod: "_wrapped_method",
    slice: "_slice",
    dict: "_dict",
    torch._ops.OpOverload: "_operator",
    torch._ops.OpOverloadPacket: "_operator",
    **dict.fromkeys(_TENSORS, "_tensor"),
    **dict.fromkeys((list, tuple, set, frozenset, deque), "_sequence"),
    **dict.fromkeys(
        (
            types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType,
            types.WrapperDescriptorType, types.ClassMethodDescriptorType,
        ),
        "_by_identity",
    ),
}  # fmt: skip


class _Layout(NamedTuple):
    """Where objects of a class keep their values: in `__dict__`, in slots, and in the type of C they derive from."""

    readable: bool
    content: _Reader | None
    slots: tuple[Any, ...]


def _number(walk: Walk, thing: Any, path: str, depth: int) -> Any:
    kind = next(base for base in type(thing).__mro__ if base in PLAIN)
    write: Any = kind.__repr__
    return (kind, write(thing))


_FACTORY: Any = vars(collections.defaultdict)["default_factory"]


def _default(walk: Walk, thing: Any, path: str, depth: int) -> Any:
    factory = _FACTORY.__get__(thing)
    return (walk._dict(thing, path, depth), walk.see(factory, path, depth + 1))


def _pairs(walk: Walk, thing: Any, path: str, depth: int) -> Any:
    return walk._dict(thing, path, depth)


def _elements(walk: Walk, thing: Any, path: str, depth: int) -> Any:
    return walk._sequence(thing, path, depth, next(base for base in type(thing).__mro__ if base in _SEQUENCES))


_SEQUENCES = frozenset({list, tuple, set, frozenset, deque})
_CONTENT: dict[type, _Reader] = {
    **dict.fromkeys((int, float, complex, str, bytes, torch.Size), _number),
    **dict.fromkeys((dict, collections.OrderedDict), _pairs),
    **dict.fromkeys(_SEQUENCES, _elements),
    collections.defaultdict: _default,
}


@functools.lru_cache(maxsize=4096)
def layout_of(cls: type) -> _Layout:
    """A class of C has more memory than its slots and its `__dict__` need: there is something nobody can read."""
    base = next((owner for owner in cls.__mro__ if owner in _CONTENT), object)
    own = cls.__mro__[: cls.__mro__.index(base)]
    # A class of C has descriptors like those of slots, but declares no slots.
    declared = [vars(c) for c in own if "__slots__" in vars(c)]
    slots = tuple(v for space in declared for v in space.values() if type(v) is types.MemberDescriptorType)
    size = base.__basicsize__ + _POINTER * len(slots)
    if cls.__dictoffset__ and not base.__dictoffset__ and not cls.__flags__ & _MANAGED_DICT:
        size += _POINTER
    if cls.__weakrefoffset__ and not base.__weakrefoffset__:
        size += _POINTER
    return _Layout(cls.__basicsize__ <= size, _CONTENT.get(base), slots)

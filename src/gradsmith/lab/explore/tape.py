"""The tape: every operation of one run, written down, so that a question about it needs no run of its own.

It listens on two levels. What the source calls (`x.clamp(0)`, `x.shape`, `no_grad`) is a *call*; a call is seen in forward
only, because PyTorch switches function modes off inside backward. What it comes down to (`aten::clamp`) is an *operation of
aten*, seen in forward and in backward, also inside TorchScript. Questions about what an author wrote read the calls,
questions about numbers the operations. dynamo refuses modes: nothing may be compiled while a tape runs.

Nothing is kept alive by it: tensors are known by their memory, and of a storage that is gone only the number stays taken
(a weak reference), so that no address means two things.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from gradsmith.about import FOLDER
from gradsmith.source import knowledge as know

Phase = Literal["forward", "backward"]
Level = Literal["call", "aten"]

# They choose a side, or accumulate by what they are given: which one shows in the values alone.
_SHOWS_VALUES = know.CLAMPS | know.COMPARISONS | know.ACCUMULATE | know.PIECEWISE | know.CHOOSES_INSIDE
_VALUES = 1 << 24  # elements kept by one tape: 128 MB in float64
_MOST = 1 << 16  # operations written down; a longer loop says nothing new
_PLAIN = (Tensor, torch.nn.Parameter, torch.nn.Buffer)
_NOTHING: frozenset[int] = frozenset()
_SCALARS = (bool, int, float, complex, str, type(None), torch.dtype, slice)


@dataclass(slots=True)  # frozen would cost more than the rest of what is written down
class Seen:
    """A tensor as an operation met it. `memory` is a number: the same one means the same view of the same memory."""

    shape: torch.Size
    dtype: torch.dtype
    memory: int
    origins: frozenset[int]  # positions of the inputs that its values derive from
    related: frozenset[int]  # and of those that only gave it their shape, or a buffer to be filled
    values: Tensor | None = None  # a copy, of operations that choose a side, while there is room
    extent: tuple[float, float] | None = None  # where there is none: the least and the largest


@dataclass(slots=True)
class Operation:
    """One operation. In `args` and `kwargs` a `Seen` stands for each tensor; numbers and words are themselves."""

    name: str  # "clamp" for `clamp_` and `aten::clamp_`, "eq" for `__eq__`, ".shape" for an attribute that is read
    level: Level
    phase: Phase
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inplace: bool = False
    line: int | None = None  # in the subject's own file
    operands: tuple[Seen, ...] = ()  # the tensors among its arguments, in their order
    results: tuple[Seen, ...] = ()
    raised: bool = False

    @property
    def origins(self) -> frozenset[int]:
        return _together([operand.origins for operand in self.operands])

    @property
    def related(self) -> frozenset[int]:
        return _together([operand.related for operand in self.operands])


class NoEnd(RuntimeError):
    """More operations than a run was allowed."""


_running: list[OperationTape] = []


OPERATIONS = 20_000  # more than any forward needs on a handful of numbers


def stopped_after(limit: int = OPERATIONS) -> OperationTape:
    """A tape that only counts, for what may never end: a loop whose condition was guessed, an iteration that does not
    converge on a guess.

    >>> with stopped_after(3):
    ...     while torch.tensor(True):
    ...         torch.ones(2)
    Traceback (most recent call last):
        ...
    gradsmith.lab.explore.tape.NoEnd: more than 3 operations
    """
    return OperationTape(limit=limit, calls_only=True, keep=False)


def spend() -> None:
    """One call of a function that was guessed: inside torch's own operators no mode is asked, so it counts itself."""
    for tape in _running:
        tape.spend()


class OperationTape(TorchDispatchMode, TorchFunctionMode):
    """Writes down every operation while it is entered; `phase` says of what.

    Four things it can do to a run: `limit` ends it with NoEnd after so many calls; `through` names calls that hand their
    first tensor through unchanged (the tape has what they would have returned); `instead(name, args, kwargs, result)` says
    what a call hands on; `around(func, args, kwargs)` runs an operation of aten. `calls_only=True` leaves out what calls come
    down to, `aten_only=True` the calls, `keep=False` writes nothing down.

    >>> with OperationTape() as tape:
    ...     _ = torch.ones(2).clamp(max=0.5)
    >>> [(op.name, op.level) for op in tape.operations]
    [('ones', 'call'), ('ones', 'aten'), ('clamp', 'call'), ('clamp', 'aten')]
    >>> tape.operations[2].kwargs, tape.operations[2].results[0].values
    ({'max': 0.5}, tensor([0.5000, 0.5000]))
    """

    def __init__(
        self,
        *,
        limit: int | None = None,
        through: frozenset[str] = frozenset(),
        instead: Callable[[str, Any, Any, Any], Any] | None = None,
        around: Callable[[Any, Any, Any], Any] | None = None,
        calls_only: bool = False,
        aten_only: bool = False,
        keep: bool = True,
        path: str | None = None,
    ) -> None:
        super().__init__()
        self.limit, self.through, self.instead, self.keep, self.path = limit, through, instead, keep, path
        self.around, self.calls_only, self.aten_only = around, calls_only, aten_only
        self.operations: list[Operation] = []
        self.inputs: dict[int, set[int]] = {}  # by position: the `memory` of the tensors in it
        self.phase: Phase = "forward"
        self.failed: Exception | None = None  # what ended the run that it recorded
        self._count = 0
        self._room = _VALUES
        self._memory = _Memory()
        self._busy = False  # inside an operation of aten, whose parts are not calls
        self._own = False  # what follows is done by the tape itself

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to be skipped by dynamo, it would have to be imported, which takes seconds; nothing compiles here."""
        return False

    def follow(self, inputs: Mapping[int, Any]) -> None:
        """These are the inputs, by position: whatever is computed from them derives from them."""
        for position, value in inputs.items():
            for tensor in (value,) if isinstance(value, (Tensor, *_SCALARS)) else pytree.tree_leaves(value):
                if isinstance(tensor, Tensor):
                    self._memory.derive(tensor, frozenset({position}), frozenset({position}))
                    self.inputs.setdefault(position, set()).add(self._memory.of(tensor)[2])

    def calls(self, names: Iterable[str] | None = None) -> Iterator[Operation]:
        """What the source of forward calls, in order; of these names only, if given."""
        return self._named("call", "forward", names)

    def aten(self, names: Iterable[str] | None = None, phase: Phase = "forward") -> Iterator[Operation]:
        """What it comes down to."""
        return self._named("aten", phase, names)

    def spend(self) -> None:
        """Counts a call."""
        self._count += 1
        if self.limit is not None and self._count > self.limit:
            raise NoEnd(f"more than {self.limit} operations")

    def __enter__(self) -> OperationTape:
        _running.append(self)
        if not self.aten_only:
            TorchFunctionMode.__enter__(self)
        if not self.calls_only:
            TorchDispatchMode.__enter__(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        if not self.calls_only:
            TorchDispatchMode.__exit__(self, *raised)
        if not self.aten_only:
            TorchFunctionMode.__exit__(self, *raised)
        _running.remove(self)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._busy:
            return func(*args, **kwargs)
        name, inplace = _name(func)
        operation = self._begun(name, "call", args, kwargs, inplace)
        if func is not torch._C._set_grad_enabled:  # stopping there would leave gradients off for good
            self._run(operation, self.spend, (), {})
        if name in self.through and args and isinstance(args[0], Tensor):
            self._ended(operation, func(args[0].clone(), *args[1:], **kwargs))
            return args[0]
        result = self._run(operation, func, args, kwargs)
        self._ended(operation, result if name != "setitem" else args[0])
        return result if self.instead is None else self.instead(name, args, kwargs, result)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._own:
            return func(*args, **kwargs)
        busy, self._busy = self._busy, True
        try:
            name = str(getattr(func, "overloadpacket", func).__name__)
            operation = self._begun(name.rstrip("_"), "aten", args, kwargs, name.endswith("_"))
            if self.around is not None:
                result = self._run(operation, self.around, (func, args, kwargs), {})
            else:
                result = self._run(operation, func, args, kwargs)
            self._ended(operation, result)
            return result
        finally:
            self._busy = busy

    def _run(self, operation: Operation | None, func: Any, args: Any, kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except Exception:
            if operation is not None:
                operation.raised = True
            raise

    def _named(self, level: Level, phase: Phase, names: Iterable[str] | None) -> Iterator[Operation]:
        wanted = None if names is None else frozenset(names)
        return (
            op
            for op in self.operations
            if op.level == level and op.phase == phase and (wanted is None or op.name in wanted)
        )

    def _begun(self, name: str, level: Level, args: Any, kwargs: Any, inplace: bool) -> Operation | None:
        """Written before it runs: it may raise, or overwrite what it is given."""
        if not self.keep or len(self.operations) >= _MOST:
            return None
        values = name in _SHOWS_VALUES
        operands: list[Seen] = []
        given = tuple([self._described(value, values, operands) for value in args])
        named = {key: self._described(value, values, operands) for key, value in kwargs.items()}
        line = _line(sys._getframe(2), self.path) if self.path is not None else None
        operation = Operation(name, level, self.phase, given, named, inplace, line, tuple(operands))
        self.operations.append(operation)
        return operation

    def _ended(self, operation: Operation | None, result: Any) -> None:
        if operation is None:
            return
        origins = _NOTHING if _takes_only_the_shape(operation.name) else operation.origins
        related, values = operation.related, operation.name in _SHOWS_VALUES
        results: list[Seen] = []
        for tensor in (result,) if isinstance(result, Tensor) else _tensors(result):
            self._memory.derive(tensor, origins, related)
            self._described(tensor, values, results)
        operation.results = tuple(results)

    def _described(self, value: Any, values: bool, tensors: list[Seen]) -> Any:
        """What stands for a value on the tape; tensors in it are added to `tensors`."""
        if isinstance(value, Tensor):
            shown = values or value.dtype == torch.bool  # a mask chooses, whatever is done with it
            seen = Seen(*self._memory.of(value), *(self._summed_up(value) if shown else (None, None)))
            tensors.append(seen)
            return seen
        if isinstance(value, (tuple, list)):
            return tuple([self._described(part, values, tensors) for part in value])
        return value if isinstance(value, _SCALARS) else type(value)

    def _summed_up(self, tensor: Tensor) -> tuple[Tensor | None, tuple[float, float] | None]:
        """A copy while there is room, else the least and the largest value."""
        wrapped = type(tensor) not in _PLAIN or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        if wrapped or tensor.layout != torch.strided or tensor.is_meta:
            return None, None
        own, self._own = self._own, True
        try:
            if tensor.numel() > self._room:
                if tensor.is_complex():
                    return None, None
                low, high = tensor.detach().aminmax()
                return None, (float(low), float(high))
            self._room -= tensor.numel()
            return tensor.detach().clone(), None
        finally:
            self._own = own


@dataclass
class _Memory:
    """Numbers for what is seen, and the inputs that each storage derives from."""

    numbers: dict[Any, int] = field(default_factory=dict)
    origins: dict[int, frozenset[int]] = field(default_factory=dict)
    related: dict[int, frozenset[int]] = field(default_factory=dict)
    taken: dict[int, object] = field(default_factory=dict)  # so that no address is given out twice

    def of(self, tensor: Tensor) -> tuple[torch.Size, torch.dtype, int, frozenset[int], frozenset[int]]:
        """Shape, type, number, and what it derives from."""
        key, shape, view = self._key(tensor)
        number = self.numbers.setdefault((key, shape, view), len(self.numbers))
        return shape, tensor.dtype, number, self.origins.get(key, _NOTHING), self.related.get(key, _NOTHING)

    def derive(self, tensor: Tensor, origins: frozenset[int], related: frozenset[int]) -> None:
        if related:
            key = self._key(tensor)[0]
            self.origins[key] = _together([self.origins.get(key, _NOTHING), origins])
            self.related[key] = _together([self.related.get(key, _NOTHING), related])

    def _key(self, tensor: Tensor) -> tuple[int, torch.Size, Any]:
        try:
            with torch._C.DisableTorchFunctionSubclass():
                storage = tensor.untyped_storage()
                key, shape, view = storage._cdata, tensor.shape, (tensor.storage_offset(), tensor.stride())
            if key not in self.taken:
                self.taken[key] = StorageWeakRef(storage)
        except (RuntimeError, NotImplementedError):  # a subclass around others, a sparse tensor: no memory of its own
            key, shape, view = id(tensor), _shape(tensor), None
            self.taken[key] = tensor
        return key, shape, view


def _name(func: Any) -> tuple[str, bool]:
    name = str(getattr(func, "__name__", ""))
    if name in ("__get__", "__set__"):
        owner = func.__self__  # a descriptor of torch, or a property in its place, which has no name before Python 3.13
        return f".{getattr(owner, '__name__', None) or owner.fget.__name__}", name == "__set__"
    if name.startswith("__") and name.endswith("__"):
        name = name.strip("_")
        return (name[1:], True) if name in _INPLACE_OPERATORS else (name, name == "setitem")
    name = name.partition(".")[0]  # torch.ops.aten.add.Tensor
    return name.rstrip("_"), name.endswith("_")


_INPLACE_OPERATORS = frozenset({"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"})


def _shape(tensor: Tensor) -> torch.Size:
    try:
        with torch._C.DisableTorchFunctionSubclass():
            return tensor.shape
    except RuntimeError:  # a nested tensor has none
        return torch.Size()


_GRADSMITH = FOLDER + os.sep


def _takes_only_the_shape(name: str) -> bool:
    return name.endswith("_like") or name.startswith("new_")


def _line(frame: FrameType | None, path: str) -> int | None:
    """The innermost line of this file between the operation and gradsmith, which called the subject."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == path:
            return frame.f_lineno
        if file.startswith(_GRADSMITH) and file != __file__:  # aten's operations run inside a call on the tape
            return None
        frame = frame.f_back
    return None


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)


def _together(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    """Their union. Nearly always one of them holds the others, and is itself handed back: a long tape has few sets, then."""
    union = _NOTHING
    for each in sets:
        if not each <= union:
            union = each if union <= each else union | each
    return union

"""A guard over the interpreter: no access outside a tensor does harm, and each one is told with the kernel's own line.

Pointers in the interpreter are real addresses, so that overruns are silent or deadly. Each storage that is passed to a launch
is replaced by a copy between two zones; lanes that leave their zone are masked off.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import TensorWrapper

from gradsmith.about import FOLDER
from gradsmith.lab.triton import bfloat16, races
from gradsmith.lab.triton.events import LOGS, Fill, Filled, Spoil, Store, Traffic, WrongAccess
from gradsmith.lab.triton.memory import GUARD, LaneGroup, Numbers, Region, RunningKernel, guarded, runs

_OURS = (os.path.dirname(triton.__file__), FOLDER, "<")
_running: list[RunningKernel] = []
_has_other: list[bool] = []  # the interpreter takes a scalar `other=0` for none, so semantic.load tells


_replaced: list[tuple[Any, str, Any]] = []  # what stood there before


def install() -> None:
    """Watch every launch of this process from now on."""
    builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    _replace(builder, "create_masked_load", _load(builder.create_masked_load))
    _replace(builder, "create_masked_store", _store(builder.create_masked_store))
    _replace(builder, "create_atomic_rmw", _atomic(builder.create_atomic_rmw))
    _replace(builder, "create_atomic_cas", _lock(builder.create_atomic_cas))
    for name in ("create_atomic_load", "create_atomic_store", "create_atomic_poll"):  # since triton 3.9
        if hasattr(builder, name):
            _replace(builder, name, _flag(getattr(builder, name)))
    _note_other()
    _replace(executor, "_init_args_hst", _place_arguments)
    _replace(executor, "__call__", _launching(executor.__call__))


def uninstall() -> None:
    """Watch no longer: a benchmark asks what watching costs."""
    while _replaced:
        owner, name, real = _replaced.pop()
        setattr(owner, name, real)


def _replace(owner: Any, name: str, new: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, new)


def _place() -> tuple[str, int]:
    """File and line of the kernel, or of the device function it called."""
    frame = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_OURS):
            return path, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0


def _program() -> int:
    (x, y, z), (_, many_y, many_z) = interpreter.interpreter_builder.grid_idx, interpreter.interpreter_builder.grid_dim
    return int((x * many_y + y) * many_z + z)


def _ids() -> str:
    return str(tuple(int(i) for i in interpreter.interpreter_builder.grid_idx))


def _tell(kind: str, region: Region, words: str, touched: tuple[tuple[int, int], ...] = ()) -> None:
    path, line = _place()
    event = WrongAccess(kind, _running[-1].kernel, path, line, region.name, region.shape, words, region.whole)
    LOGS[-1].report(replace(event, elements=region.elements, touched=touched))


def _inside(kind: str, pointers: Numbers, mask: Numbers, item: int) -> tuple[Numbers, list[LaneGroup]]:
    """A mask without the lanes that must not run, and the parts of the access; lanes outside are told."""
    launch = _running[-1]
    x, y, z = interpreter.interpreter_builder.grid_dim
    launch.alone = x * y * z == 1
    shape = np.broadcast_shapes(pointers.shape, mask.shape)
    flat = np.broadcast_to(pointers, shape).reshape(-1)
    keep = np.broadcast_to(mask, shape).reshape(-1).astype(bool, copy=False)
    parts = list(launch.parts(flat, keep, item))
    for part in parts:
        if part.whole:
            continue
        outside = part.offsets[~part.inside]
        first, count = int(outside[0]) // part.region.item, len(outside)
        lanes = f" and {count - 1} more" if count > 1 else ""
        _tell(
            kind,
            part.region,
            f"program {_ids()} touches element [{first}]{lanes}; the tensor has {part.region.elements} elements",
            runs(part.offsets // part.region.item),
        )
        wild = (part.offsets < -GUARD) | (part.offsets + item > part.region.high - part.region.low + GUARD)
        if not keep.flags.writeable:
            keep = keep.copy()
        keep[part.lanes[wild if kind == "load" else ~part.inside]] = False
    return keep.reshape(shape), parts


def _item(pointers: Any) -> int:
    return max(1, int(pointers.get_element_ty().primitive_bitwidth) // 8)


def _mask(keep: Numbers) -> Any:
    return interpreter.TensorHandle(keep, tl.int1)


def _lanes(mask: Any) -> Numbers:
    """The lanes of a mask: block pointers and descriptors come with a bare array."""
    return mask if isinstance(mask, np.ndarray) else mask.data


def _race(found: tuple[str, str] | None, region: Region) -> None:
    if found is not None:
        _tell(found[0], region, found[1])


def _load(real: Any) -> Any:
    @functools.wraps(real)
    def load(self: Any, pointers: Any, mask: Any, other: Any = None, *more: Any, **named: Any) -> Any:
        if not _running:
            return real(self, pointers, mask, other, *more, **named)
        item = _item(pointers)
        lanes = _lanes(mask)
        keep, parts = _inside("load", pointers.data, lanes, item)
        if named.get("is_volatile", more[-1] if more else False) is True:  # how a program waits for another one
            _running[-1].waited = _program()
        for part in parts:
            _race(races.loaded(_running[-1], part, _program()), part.region)
        traffic = LOGS[-1].traffic[_running[-1].kernel]
        traffic.loaded += item * sum(len(p.lanes) for p in parts)
        if other is None and not (_has_other and _has_other[-1]) and not lanes.all():
            other = _undefined(pointers, parts)
        return real(self, pointers, _mask(keep), other, *more, **named)

    return load


def _undefined(pointers: Any, parts: list[LaneGroup]) -> Any:
    """What stands in lanes that a mask leaves undefined, where somebody wants to see whether it is used."""
    place = _place()
    name = parts[0].region.name if parts else _owner(pointers.data)
    LOGS[-1].undefined[place] = (_running[-1].kernel, name)
    kind = pointers.get_element_ty()
    if Fill.lines is None or place not in Fill.lines or not kind.is_floating():
        return None
    shape = pointers.data.shape
    numbers = np.resize(np.array([977.0, -1013.0, 1031.0], np.float32), shape)
    if kind == tl.bfloat16:
        return interpreter.TensorHandle(bfloat16.encoded(numbers), kind)
    as_numbers = interpreter._get_np_dtype(kind)
    return interpreter.TensorHandle(numbers.astype(as_numbers), kind) if as_numbers.kind == "f" else None


def _owner(pointers: Numbers) -> str:
    launch = _running[-1]
    if not launch.regions or not pointers.size:
        return "?"
    number = int(np.searchsorted(launch.lows, pointers.reshape(-1)[0], side="right")) - 1
    return launch.regions[max(number, 0)].name


def _store(real: Any) -> Any:
    @functools.wraps(real)
    def store(self: Any, pointers: Any, value: Any, mask: Any, *more: Any, **named: Any) -> Any:
        if not _running:
            return real(self, pointers, value, mask, *more, **named)
        item = _item(pointers)
        keep, parts = _inside("store", pointers.data, _lanes(mask), item)
        values = np.broadcast_to(value.data, keep.shape).reshape(-1)
        for part in parts:
            _race(races.stored(_running[-1], part, _program(), values), part.region)
        _filled(parts, item)
        return real(self, pointers, _spoilt(value), _mask(keep), *more, **named)

    return store


def _spoilt(value: Any) -> Any:
    """The value that is stored, or NaN where somebody asks what is computed from it."""
    if not Spoil.lines or _place() not in Spoil.lines:
        return value
    if value.dtype.scalar == tl.bfloat16:
        return interpreter.TensorHandle(bfloat16.encoded(np.full(value.data.shape, np.nan, np.float32)), value.dtype)
    if value.data.dtype.kind != "f":
        return value
    return interpreter.TensorHandle(np.full_like(value.data, np.nan), value.dtype)


def _filled(parts: list[LaneGroup], item: int) -> None:
    launch, (path, line) = _running[-1], _place()
    traffic = LOGS[-1].traffic[launch.kernel]
    for part in parts:
        traffic.stored += item * len(part.lanes)
        region = part.region
        known = LOGS[-1].filled.get(region.source)
        if known is None or known.nbytes != region.high - region.low or known.item != region.item:
            written = np.zeros(region.elements + 1, bool)
            shape = region.shape if region.whole else (region.elements,)
            known = Filled(region.high - region.low, region.item, written, shape, region.ends_unset())
            LOGS[-1].filled[region.source] = known
        known.written[part.indices] = True
        store = Store(launch.kernel, path, line, region.name)
        if not known.stores or known.stores[-1] != store:
            known.stores = [s for s in known.stores if s != store] + [store]


def _atomic(real: Any) -> Any:
    @functools.wraps(real)
    def change(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *more: Any, **named: Any) -> Any:
        if not _running:
            return real(self, operation, pointers, value, mask, *more, **named)
        item = _item(pointers)
        keep, parts = _inside("store", pointers.data, mask.data, item)
        if str(operation).endswith("XCHG"):
            _running[-1].waited = _program()
        for part in parts:
            _race(races.changed(_running[-1], part, _program()), part.region)
        _filled(parts, item)
        value = _spoilt(value)
        return real(self, operation, pointers, value, _mask(keep.reshape(mask.data.shape)), *more, **named)

    return change


def _lock(real: Any) -> Any:
    @functools.wraps(real)
    def compare_and_swap(self: Any, pointers: Any, expected: Any, value: Any, *more: Any, **named: Any) -> Any:
        if not _running:
            return real(self, pointers, expected, value, *more, **named)
        _running[-1].waited = _program()
        keep, parts = _inside("store", pointers.data, np.ones(pointers.data.shape, bool), _item(pointers))
        for part in parts:
            races.changed(_running[-1], part, _program())
        if not keep.all():  # it has no mask: nothing is swapped, and every lane is told that it was
            return expected
        return real(self, pointers, expected, value, *more, **named)

    return compare_and_swap


def _flag(real: Any) -> Any:
    """A load or store that programs tell each other something by."""

    @functools.wraps(real)
    def access(self: Any, *arguments: Any, **named: Any) -> Any:
        if _running:
            _running[-1].waited = _program()
        return real(self, *arguments, **named)

    return access


def _note_other() -> None:
    semantic = getattr(tl.semantic, "TritonSemantic", None)
    owner = semantic if semantic is not None else tl.semantic
    real = owner.load
    position = 2 if semantic is not None else 1  # after the mask; a method has itself before

    @functools.wraps(real)
    def load(*arguments: Any, **named: Any) -> Any:
        other = named["other"] if "other" in named else arguments[position + 1]
        _has_other.append(other is not None)
        try:
            return real(*arguments, **named)
        finally:
            _has_other.pop()

    _replace(owner, "load", load)


def _place_arguments(self: Any, arguments: Any, named: Any) -> tuple[list[Any], dict[str, Any]]:
    launch = _running[-1]
    storages: dict[int, Any] = {}
    names = [*self.arg_names, *["?"] * len(arguments)]
    listed = [_moved(a, n, launch, storages) for a, n in zip(arguments, names)]
    by_name = {n: _moved(a, n, launch, storages) for n, a in named.items()}
    launch.close()
    return listed, by_name


def _moved(argument: Any, name: str, launch: RunningKernel, storages: dict[int, Any]) -> Any:
    """The argument over guarded memory. (No closure that calls itself: such a cycle would keep the user's graph alive.)"""
    if isinstance(argument, tuple):
        parts = [_moved(a, f"{name}[{k}]", launch, storages) for k, a in enumerate(argument)]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    if hasattr(argument, "base") and hasattr(argument, "block_shape"):
        return _with_base(argument, _moved(argument.base, name, launch, storages))
    if not hasattr(argument, "data_ptr"):
        return argument
    tensor = argument.base if isinstance(argument, TensorWrapper) else argument
    address = tensor.untyped_storage().data_ptr()
    if address not in storages:
        region, storages[address] = guarded(tensor, name)
        launch.regions.append(region)
    moved = tensor.detach().new_empty(0)
    moved.set_(storages[address], tensor.storage_offset(), tensor.size(), tensor.stride())
    return TensorWrapper(moved, argument.dtype) if isinstance(argument, TensorWrapper) else moved


def _with_base(descriptor: Any, base: Any) -> Any:
    """The same tensor descriptor over other memory."""
    import copy

    new = copy.copy(descriptor)
    new.base = base
    return new


def _launching(real: Any) -> Any:
    @functools.wraps(real)
    def launch(self: Any, *arguments: Any, **named: Any) -> Any:
        name = getattr(self.fn, "__name__", "?")
        code = getattr(self.fn, "__code__", None)
        traffic = LOGS[-1].traffic.setdefault(
            name, Traffic(code.co_filename if code else "", code.co_firstlineno if code else 0)
        )
        traffic.launches += 1
        traffic.blocks |= {v for k, v in named.items() if k in self.constexprs and type(v) is int and v > 1}
        _running.append(RunningKernel(name))
        try:
            result = real(self, *arguments, **named)
            grid = interpreter.interpreter_builder.grid_dim
            programs = int(grid[0] * grid[1] * grid[2])
            traffic.programs += programs
            traffic.idle += not programs
            return result
        finally:
            _running.pop()

    return launch

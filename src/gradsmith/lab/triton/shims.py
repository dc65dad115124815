"""What Triton's interpreter lacks, each thing by itself: installed after `import triton` and before the user's module.

Every version of triton from 3.2 on keeps these names; where one of them is missing, its shim is left out.
"""

from __future__ import annotations

import ast
import functools
import os
from typing import Any

_installed: list[str] = []
_LOOPS = ("range", "tl.range", "triton.language.range")


def installed() -> bool:
    """Whether this process interprets kernels with all that the interpreter lacks."""
    return bool(_installed)


def install() -> None:
    """Make this process one that interprets kernels. Once is enough."""
    if _installed:
        return
    os.environ["TRITON_INTERPRET"] = "1"
    from gradsmith.lab.triton import bfloat16, guard, libdevice, pretended

    for shim in (
        _scalars,
        _loops,
        _masks,
        _grids,
        _patch_once,
        _autotune,
        libdevice.install,
        pretended.install,
        bfloat16.install,
    ):
        try:
            shim()
        except AttributeError:  # another triton, which has no need of it or no place for it
            continue
        _installed.append(f"{shim.__module__}.{shim.__name__}")
    guard.install()


def _scalars() -> None:
    """A float argument is a float32 scalar on a GPU; the interpreter leaves it a Python float, without `.to` or `.dtype`."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    from gradsmith.lab.triton.counts import used

    real = interpreter._implicit_cvt

    @functools.wraps(real)
    def convert(argument: Any) -> Any:
        if type(argument) is not float:
            return real(argument)
        used("float arguments")
        return tl.tensor(interpreter.TensorHandle(np.array([argument], np.float32), tl.float32), tl.float32)

    interpreter._implicit_cvt = convert


def _loops() -> None:
    """The variable of `for i in range(...)` is a scalar tensor in a compiled kernel, so that `i.to(tl.int64)` works."""
    from triton.runtime import interpreter

    from gradsmith.lab.triton.counts import used

    def visit_for(self: Any, node: ast.For) -> ast.For:
        self.generic_visit(node)
        called = ast.unparse(node.iter.func) if isinstance(node.iter, ast.Call) else ""
        if isinstance(node.target, ast.Name) and called in _LOOPS:
            used("loop variables")
            name = node.target.id
            again = ast.Assign([ast.Name(name, ast.Store())], ast.Name(name, ast.Load()))
            # An assignment makes a tensor of its value, by whatever this version of the interpreter does for that.
            wrapped = self.visit_Assign(again)
            for part in ast.walk(wrapped):
                ast.copy_location(part, node)
            node.body.insert(0, wrapped)
        return node

    interpreter.ASTTransformer.visit_For = visit_for


def _masks() -> None:
    """A mask may be a Python number or bool (`mask = i < n` of two loop counters); the interpreter wants booleans."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    from gradsmith.lab.triton.counts import used

    builder = interpreter.InterpreterBuilder

    def boolean(mask: Any) -> Any:
        if isinstance(mask, np.ndarray):  # of a block pointer or a descriptor
            return interpreter.TensorHandle(mask, tl.int1)
        if mask.data.dtype == bool:
            return mask
        used("masks")
        return interpreter.TensorHandle(mask.data.astype(bool), tl.int1)

    load, store = builder.create_masked_load, builder.create_masked_store

    def masked_load(self: Any, pointers: Any, mask: Any, *more: Any, **named: Any) -> Any:
        return load(self, pointers, boolean(mask), *more, **named)

    def masked_store(self: Any, pointers: Any, value: Any, mask: Any, *more: Any, **named: Any) -> Any:
        return store(self, pointers, value, boolean(mask), *more, **named)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store


def _grids() -> None:
    """A grid may be a list: a launch on a GPU takes its elements one by one, the interpreter adds a tuple to it."""
    from triton.runtime import interpreter

    from gradsmith.lab.triton.counts import used

    executor = interpreter.GridExecutor
    real = executor.__init__

    def as_tuple(grid: Any) -> Any:
        if isinstance(grid, list):
            used("grids")
            return tuple(grid)
        return grid

    @functools.wraps(real)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)
        given = self.grid
        self.grid = (lambda meta: as_tuple(given(meta))) if callable(given) else as_tuple(given)

    executor.__init__ = init


def _patch_once() -> None:
    """The interpreter patches triton.language at every launch and every call of a device function (8 ms for tl.sum).

    A process that only interprets needs that once for each set of names under which a kernel sees the language.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    real, done = interpreter._patch_lang, set()

    class Kept:
        def restore(self) -> None: ...

    def patch(function: Any) -> Kept:
        seen = frozenset(id(value) for value in function.__globals__.values() if value is tl or value is tl.core)
        if seen not in done:
            real(function)
            tl.core.tensor.__index__ = _as_index
            done.add(seen)
        return Kept()

    interpreter._patch_lang = patch


def _as_index(scalar: Any) -> int:
    """A scalar is an array of one element, which older interpreters pass to int(): NumPy does not take that any more."""
    return int(scalar.handle.data.reshape(-1)[0])


class TunedChoice:
    """Which configuration an autotuned kernel runs with: 0 is the one with the smallest blocks, -1 the largest."""

    number = 0
    tuned: set[str] = set()  # kernels that had more than one to choose from


def _autotune() -> None:
    """Nothing is timed: the smallest blocks make loops and remainders happen on small inputs."""
    from triton.runtime.autotuner import Autotuner

    from gradsmith.lab.triton.counts import used

    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, arguments))
        try:
            configs = list(self.prune_configs(named))
        except Exception:  # the user's own pruning, which may ask a GPU
            configs = list(self.configs)
        if len(self.configs) > 1:
            used("autotune")
            TunedChoice.tuned.add(getattr(self.base_fn, "__name__", "") if hasattr(self, "base_fn") else "")
        ordered = sorted(configs, key=_block_size)
        chosen = ordered[TunedChoice.number % len(ordered)] if TunedChoice.number >= 0 else ordered[-1]
        self.best_config = chosen
        every = {**self.nargs, **named, **chosen.all_kwargs()}
        if chosen.pre_hook is not None:
            chosen.pre_hook(every)
        if getattr(self, "reset_to_zero", None) or getattr(self, "user_defined_pre_hook", False):
            self.pre_hook(every, reset_only=True)
        self.nargs = None  # it would keep the tensors, and their graph, until the next launch
        # How many warps there are is the compiler's business, unless the kernel asks for it.
        options = {k: v for k, v in chosen.all_kwargs().items() if k in chosen.kwargs or k in self.arg_names}
        return self.fn.run(*arguments, **named, **options)

    Autotuner.run = run


def _block_size(config: Any) -> int:
    size = 1
    for value in config.kwargs.values():
        if isinstance(value, int) and not isinstance(value, bool):
            size *= max(value, 1)
    return size

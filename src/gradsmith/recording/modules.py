"""The user's own nn.Modules while a tape runs: how they were built, and the first calls of those that run a custom Function.

Nothing of this is paid for in the long run: `forward` is wrapped in the class, never in an instance (a hook there would end
up in checkpoints), and unwrapped after the first instances have been called. Construction is noted by nn.Module.__init__.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling

from gradsmith.lab.subject.defined import subclasses
from gradsmith.recording.call import copies, user_line

KEPT_INSTANCES = 3  # of each class
_MOST_CALLS = 32  # of each class that are looked at for further instances
_NOT_USERS = ("torch.", "torchvision.", "torchaudio.", "gradsmith.")
_NO_DEFAULT = object()
_LIBRARY = "torch.nn.modules.module"


@dataclass
class Construction:
    """`Cell(4, hidden=6)` at `train.py:30`: the arguments by name, as they were when nn.Module.__init__ was called."""

    arguments: dict[str, Any]
    line: str

    def code(self, name: str) -> str:
        return f"{name}({', '.join(f'{k}={_shown(v)}' for k, v in self.arguments.items())})"


@dataclass
class ModuleCall:
    """One instance of a user's module, alive, the arguments of one call of it, and the custom Functions that ran in it."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    built: Construction | None
    functions: list[type] = field(default_factory=list)

    @property
    def name(self) -> str:
        return type(self.module).__name__

    @property
    def code(self) -> str:
        """How it was built, as code; `Cell(...)` where that was before the tape ran."""
        return self.built.code(self.name) if self.built is not None else f"{self.name}(...)"


class ModuleWatch:
    """Between `start` and `stop`; `ran(cls)` is told of custom Functions that run while `running` is not empty."""

    def __init__(self) -> None:
        self.calls: list[ModuleCall] = []  # of modules that ran a custom Function
        self.undo: list[Callable[[], None]] = []
        self._built: dict[int, tuple[weakref.ref[nn.Module], Construction]] = {}
        self.running: list[ModuleCall] = []  # calls that are being kept and have not returned

    def start(self) -> None:
        for cls in subclasses(nn.Module):
            self._wrap(cls)
        made = nn.Module.__init__

        @functools.wraps(made)
        def init(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            made(module, *args, **kwargs)
            if _is_users(type(module)) and not is_compiling():
                self._note(module)

        def subclassed(cls: Any, /, **kwargs: Any) -> None:
            super(nn.Module, cls).__init_subclass__(**kwargs)  # type: ignore[misc]
            self._wrap(cls)

        setattr(nn.Module, "__init__", init)  # noqa: B010  # mypy takes the plain spelling for a mistake
        self.undo.append(lambda: setattr(nn.Module, "__init__", made))
        setattr(nn.Module, "__init_subclass__", classmethod(subclassed))  # noqa: B010
        self.undo.append(lambda: delattr(nn.Module, "__init_subclass__"))

    def stop(self) -> None:
        while self.undo:
            self.undo.pop()()
        self._built.clear()

    def ran(self, cls: type) -> None:
        """A custom Function runs: it belongs to the innermost of the user's modules around it."""
        call = self.running[-1]
        if call.module is not _innermost_module():
            return  # that one's calls have been kept already, and the one outside it only contains it
        if cls not in call.functions:
            call.functions.append(cls)
        if not any(call is known for known in self.calls):
            self.calls.append(call)

    def _wrap(self, cls: type) -> None:
        original = cls.__dict__.get("forward")
        if not _is_users(cls) or not inspect.isfunction(original):
            return
        seen: list[weakref.ref[nn.Module]] = []
        calls = 0

        @functools.wraps(original)
        def forward(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            if is_compiling():
                return original(module, *args, **kwargs)
            calls += 1
            if calls == _MOST_CALLS:
                unwrap()
            if any(known() is module for known in seen):
                return original(module, *args, **kwargs)
            seen.append(weakref.ref(module))
            if len(seen) == KEPT_INSTANCES:
                unwrap()
            kept = copies((args, kwargs))
            if kept is None:
                return original(module, *args, **kwargs)
            self.running.append(ModuleCall(module, kept[0], kept[1], self._construction(module)))
            try:
                return original(module, *args, **kwargs)
            finally:
                self.running.pop()

        def unwrap() -> None:
            if cls.__dict__.get("forward") is forward:
                cls.forward = original  # type: ignore[attr-defined]

        cls.forward = forward  # type: ignore[attr-defined]
        self.undo.append(unwrap)

    def _note(self, module: nn.Module) -> None:
        frame = _constructor_of(module)
        if frame is None:
            return
        names, star, stars, values = inspect.getargvalues(frame)
        defaults = _defaults(type(module))
        arguments = {n: values[n] for n in names[1:] if n in values and values[n] is not defaults.get(n, _NO_DEFAULT)}
        arguments |= {f"*{star}": values[star]} if star and values.get(star) else {}
        arguments |= values.get(stars, {}) if stars else {}
        self._built[id(module)] = (weakref.ref(module), Construction(arguments, user_line(frame.f_back)))

    def _construction(self, module: nn.Module) -> Construction | None:
        known, construction = self._built.get(id(module), (None, None))
        return construction if known is not None and known() is module else None


def _constructor_of(module: nn.Module) -> Any:
    """The frame of the outermost `__init__` that is making this object: that of its own class."""
    frame: Any = sys._getframe(2)
    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__init__" and code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is module:
            found = frame
        elif found is not None:
            break
        frame = frame.f_back
    return found


def _innermost_module() -> nn.Module | None:
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount and frame.f_globals.get("__name__") != _LIBRARY:
            first = frame.f_locals.get(code.co_varnames[0])
            if isinstance(first, nn.Module) and _is_users(type(first)):
                return first
        frame = frame.f_back
    return None


def _defaults(cls: type) -> dict[str, Any]:
    try:
        return {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    except (TypeError, ValueError):
        return {}


def _is_users(cls: type) -> bool:
    return not f"{cls.__module__}.".startswith(_NOT_USERS)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device)):
        return repr(value)
    if isinstance(value, (list, tuple)) and len(value) <= 8:
        inner = ", ".join(_shown(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, type) or inspect.isroutine(value):
        return str(getattr(value, "__name__", "..."))
    return f"<{type(value).__qualname__}>"

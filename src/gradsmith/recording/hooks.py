"""Hooks in custom Functions: `forward` is wrapped in the class that defines it, so that `f = Fn.apply` is recorded, too.

`Function.apply` looks `forward` up on the class at every call (C++), so code that took `apply` at import time still
meets the wrapper. Classes that appear later are wrapped when their metaclass makes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sized
from typing import Any

from torch.autograd import Function
from torch.autograd.function import FunctionMeta, _SingleLevelFunction
from torch.compiler import is_compiling

from gradsmith.lab.process import torch_says
from gradsmith.lab.subject.defined import subclasses
from gradsmith.recording.call import Call
from gradsmith.recording.call_hook import CallHook, Note

# (class, type of its ctx, arguments of forward) -> where the call is noted.
Find = Callable[[type, type, tuple[Any, ...]], Call]


class FunctionHooks:
    """Wrappers around every custom Function while `start` ... `stop`."""

    def __init__(self, find: Find, note: Note, attention: Sized) -> None:
        self.find = find
        self.note = note
        self.attention = attention
        self.undo: list[Callable[[], None]] = []
        self.active = False

    def start(self) -> None:
        self.active = True
        for cls in subclasses(Function):
            self._wrap(cls)
        made = FunctionMeta.__init__

        def init(cls: Any, name: str, bases: Any, attributes: Any) -> None:
            made(cls, name, bases, attributes)
            if self.active:
                self._wrap(cls)

        FunctionMeta.__init__ = init  # type: ignore[method-assign]
        self.undo.append(lambda: setattr(FunctionMeta, "__init__", made))

    def stop(self) -> None:
        self.active = False
        while self.undo:
            self.undo.pop()()

    def _wrap(self, cls: type) -> None:
        if cls.__module__.startswith("torch."):
            return
        for name in ("forward", "setup_context"):
            own = cls.__dict__.get(name)
            if own is None:
                continue
            if name == "forward" and has_own_setup(cls):
                continue  # its setup_context is told the inputs, and has the ctx that says which class it is
            setattr(cls, name, self._hooked(cls, name, own))
            self.undo.append(functools.partial(setattr, cls, name, own))

    def _hooked(self, definer: type, name: str, own: Any) -> Any:
        """The same kind of method (static, class, plain) with a hook in it: told before forward, after a setup_context."""
        original = own.__func__ if isinstance(own, (staticmethod, classmethod)) else own
        hook = CallHook(functools.partial(self._find, definer, name), self.note, self.attention)

        def record(ctx: Any, args: tuple[Any, ...]) -> None:
            """A function, because torch.compile reads what the wrappers below close over, and takes no other object (torch 2.6)."""
            hook.record_call(type(ctx), args)

        @functools.wraps(original)
        def forward(ctx: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                record(ctx, args)
            return original(ctx, *args, **kwargs)

        @functools.wraps(original)
        def class_forward(cls: Any, ctx: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                record(ctx, args)
            return original(cls, ctx, *args, **kwargs)

        @functools.wraps(original)
        def setup_context(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                ctx, inputs = args[-3:-1]  # after a cls, maybe
                record(ctx, tuple(inputs))
            return original(*args, **kwargs)

        if name == "setup_context":
            method: Callable[..., Any] = setup_context
        else:
            method = class_forward if isinstance(own, classmethod) else forward
        return type(own)(method) if isinstance(own, (staticmethod, classmethod)) else method

    def _find(self, definer: type, name: str, context: type, args: tuple[Any, ...]) -> Call | None:
        """None for a parent's forward that a subclass calls (that is one call, of the subclass), or for no ctx at all."""
        cls: type | None = torch_says.forward_class(context)
        if not self.active or cls is None or _definer(cls, name) is not definer:
            return None
        return self.find(cls, context, args)


def has_own_setup(cls: type) -> bool:
    return getattr(cls, "setup_context", None) is not _SingleLevelFunction.setup_context


def _definer(cls: type, name: str) -> type | None:
    return next((base for base in cls.__mro__ if name in base.__dict__), None)

"""Listen to custom Functions: `forward` is wrapped in the class that defines it, so that `f = Fn.apply` is heard, too.

`Function.apply` looks `forward` up on the class at every call (C++), so code that took `apply` at import time still
meets the wrapper. Classes that appear later are wrapped when their metaclass makes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import FunctionMeta, _SingleLevelFunction

# (class, arguments of forward): called before forward runs, after it for Functions with a setup_context.
Listener = Callable[[type, tuple[Any, ...]], None]


class Wiretap:
    """Wrappers around every custom Function while `start` ... `stop`."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.undo: list[Callable[[], None]] = []
        self.listening = False

    def start(self) -> None:
        self.listening = True
        for cls in subclasses(Function):
            self._wrap(cls)
        made = FunctionMeta.__init__

        def init(cls: Any, name: str, bases: Any, attributes: Any) -> None:
            made(cls, name, bases, attributes)
            if self.listening:
                self._wrap(cls)

        FunctionMeta.__init__ = init  # type: ignore[method-assign]
        self.undo.append(lambda: setattr(FunctionMeta, "__init__", made))

    def stop(self) -> None:
        self.listening = False
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
            setattr(cls, name, self._listening(cls, name, own))
            self.undo.append(functools.partial(setattr, cls, name, own))

    def _listening(self, definer: type, name: str, own: Any) -> Any:
        """The same kind of method (static, class, plain) with an ear in it."""
        original = own.__func__ if isinstance(own, (staticmethod, classmethod)) else own
        skip = 1 if isinstance(own, classmethod) else 0
        is_setup = name == "setup_context"
        # By the type of the ctx, which is made with the class: whose call to note, None for a parent's forward that a
        # subclass calls (that is one call, of the subclass), or for no ctx at all.
        callers: dict[type, type | None] = {}

        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not self.listening or len(args) <= skip:
                return original(*args, **kwargs)
            context = type(args[skip])
            try:
                cls = callers[context]
            except KeyError:
                cls = callers[context] = _caller_class(context, name, definer)
            if cls is not None:
                self.listener(cls, tuple(args[skip + 1]) if is_setup else args[skip + 1 :])
            return original(*args, **kwargs)

        return type(own)(method) if isinstance(own, (staticmethod, classmethod)) else method


def has_own_setup(cls: type) -> bool:
    return getattr(cls, "setup_context", None) is not _SingleLevelFunction.setup_context


def subclasses(cls: type) -> Iterator[type]:
    seen: set[type] = set()
    stack: list[type] = list(type.__subclasses__(cls))
    while stack:
        found = stack.pop()
        if found not in seen:
            seen.add(found)
            yield found
            stack.extend(type.__subclasses__(found))


def _caller_class(context: type, name: str, definer: type) -> type | None:
    cls: type | None = getattr(context, "_forward_cls", None)
    return cls if cls is not None and _definer(cls, name) is definer else None


def _definer(cls: type, name: str) -> type | None:
    return next((base for base in cls.__mro__ if name in base.__dict__), None)

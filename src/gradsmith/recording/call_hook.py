"""What stands before a Function's own method and is told every call of it.

Reading five attributes of two tensors is most of what a call costs (4 of 5 us inside a training step, where little is in the
processor's caches; benchmarks/recording_overhead.py). So the rest of a known call touches two small objects only, the hook and
the Call, and nothing is looked up: the call that followed last time is expected, and recognised by one hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

from gradsmith.lab.subject.signature import signature
from gradsmith.recording.call import KEPT_CALLS, Call

# Of the type of a ctx and the arguments: the Call, or None where nobody wants to know.
Find = Callable[[type, tuple[Any, ...]], Call | None]
Note = Callable[[Call, tuple[Any, ...]], None]


class CallHook:
    """Of one method of one class. `note` is told of the first calls, and of all while something is in `attention`."""

    __slots__ = ("attention", "find", "last", "note")

    def __init__(self, find: Find, note: Note, attention: Sized) -> None:
        self.find = find
        self.note = note
        self.attention = attention
        self.last: Call | None = None

    def record_call(self, context: type, args: tuple[Any, ...]) -> None:
        last = self.last
        call = None if last is None else last.follower
        try:
            known = call is not None and call.context is context and call.known_as == hash(signature(args))
        except (TypeError, RuntimeError):  # an argument without hash, or a tensor subclass without shape
            known = False
        if not known:
            call = self.find(context, args)
            if last is not None:
                last.follower = call
        if call is None:
            return
        self.last = call
        call.count += 1
        if call.count <= KEPT_CALLS or self.attention:
            self.note(call, args)

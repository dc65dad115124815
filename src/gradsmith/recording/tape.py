"""`gs.record()`: the tape on which the calls of custom Functions are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gradsmith.inputs.latest import stopped
from gradsmith.lab.subject.signature import signature
from gradsmith.recording.call import KEPT_CALLS, Call, keep
from gradsmith.recording.hooks import FunctionHooks
from gradsmith.recording.modules import ModuleCall, ModuleWatch

if TYPE_CHECKING:
    from gradsmith.findings import Report

KEPT_SIGNATURES = 24  # of each Function: arguments that differ at every step must not fill the memory


class Tape:
    """Every custom Function that ran, by signature. `check` verifies them on what they were given."""

    def __init__(self, *, modules: bool = True) -> None:
        self._calls: dict[type, dict[Hashable, Call]] = {}
        self._modules = ModuleWatch() if modules else None
        attention = self._modules.running if self._modules is not None else ()
        self._hooks = FunctionHooks(self._find, self._note, attention)

    @property
    def calls(self) -> list[Call]:
        """One entry for each distinct signature, in the order of their first calls."""
        return [call for by_signature in self._calls.values() for call in by_signature.values()]

    @property
    def functions(self) -> list[type[torch.autograd.Function]]:
        return list(self._calls)

    @property
    def modules(self) -> list[ModuleCall]:
        """The user's nn.Modules in which custom Functions ran: a few instances of each class, in order of their calls."""
        return self._modules.calls if self._modules is not None else []

    def of(self, cls: type) -> list[Call]:
        return list(self._calls.get(cls, {}).values())

    def count(self, cls: type) -> int:
        return sum(call.count for call in self.of(cls))

    def check(self, **options: Any) -> Report:
        """Check every Function on the tape; options are those of `gs.check`.

        `budget` limits the seconds that all of it may take; `third_party=False` leaves out what installed packages bring.
        """
        from gradsmith.checking.recorded import check_tape

        return check_tape(self, **options)

    def save(self, path: str | Path) -> None:
        """The calls as readable JSON, for `gradsmith check --recorded`."""
        from gradsmith.inputs.recorded_file import write

        write(self, Path(path))

    def summary(self) -> str:
        """`2 Functions ran: Swish 300 times (train.py:12), Round once (ops.py:40)`."""
        if not self._calls:
            return "no custom Function ran"
        words = []
        for cls in self._calls:
            n = self.count(cls)
            lines = sum((call.lines for call in self.of(cls)), Counter[str]())
            at = f" ({', '.join(line for line, _ in lines.most_common(3))})" if lines else ""
            words.append(f"{self.of(cls)[0].name} {'once' if n == 1 else f'{n} times'}{at}")
        plural = "Function" if len(words) == 1 else "Functions"
        return f"{len(words)} {plural} ran: {', '.join(words)}"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.summary())}</pre>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    def __enter__(self) -> Tape:
        self._hooks.start()
        if self._modules is not None:
            self._modules.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._modules is not None:
            self._modules.stop()
        self._hooks.stop()
        stopped(self)

    def _find(self, cls: type, context: type, args: tuple[Any, ...]) -> Call:
        """The entry of a call with these arguments, old or new."""
        calls = self._calls.setdefault(cls, {})
        known_as: int | None
        try:
            key = signature(args)
            known_as = hash(key)
        except (TypeError, RuntimeError):  # an argument without hash, or a tensor subclass without shape
            key, known_as = "?", None
        if key not in calls and len(calls) >= KEPT_SIGNATURES:
            key, known_as = "...", None
        if key not in calls:
            calls[key] = Call(cls, context=context, known_as=known_as)
        return calls[key]

    def _note(self, call: Call, args: tuple[Any, ...]) -> None:
        if call.count <= KEPT_CALLS:
            keep(call, args)
        if self._modules is not None and self._modules.running:
            self._modules.ran(call.cls)


def record() -> Tape:
    """Note every custom Function that runs in a `with` block; `tape.check()` then verifies them.

    >>> with record() as tape:
    ...     pass
    >>> str(tape)
    'no custom Function ran'
    """
    return Tape()

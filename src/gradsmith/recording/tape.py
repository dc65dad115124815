"""`gs.record()`: the tape on which the calls of custom Functions are kept."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.lab.cells import cell_number
from gradsmith.recording.scaling import FULL, scaled
from gradsmith.recording.signature import signature
from gradsmith.recording.wiretap import Wiretap

if TYPE_CHECKING:
    from gradsmith.findings import Report

KEPT_CALLS = 3  # of each signature; later ones are only counted
KEPT_SIGNATURES = 24  # of each Function: arguments that differ at every step must not fill the memory
_SMALL = 1 << 14  # elements; of larger calls only the first is kept


@dataclass
class Call:
    """One way in which a Function was called: its class, how often, from where, and copies of the first inputs."""

    cls: type[torch.autograd.Function]
    count: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[Any, ...]] = field(default_factory=list)
    scaled: str = ""  # how large inputs were made smaller, for the reader

    @property
    def name(self) -> str:
        return _short_name(self.cls)


class Tape:
    """Every custom Function that ran, by signature. `check` verifies them on what they were given."""

    def __init__(self) -> None:
        self._calls: dict[type, dict[Hashable, Call]] = {}
        self._wiretap = Wiretap(self._heard)

    @property
    def calls(self) -> list[Call]:
        """One entry for each distinct signature, in the order of their first calls."""
        return [call for by_signature in self._calls.values() for call in by_signature.values()]

    @property
    def functions(self) -> list[type[torch.autograd.Function]]:
        return list(self._calls)

    def of(self, cls: type) -> list[Call]:
        return list(self._calls.get(cls, {}).values())

    def count(self, cls: type) -> int:
        return sum(call.count for call in self.of(cls))

    def check(self, **options: Any) -> Report:
        """Check every Function on the tape; options are those of `gs.check`."""
        from gradsmith.inputs.recorded import check_tape

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
            words.append(f"{_short_name(cls)} {'once' if n == 1 else f'{n} times'}{at}")
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
        self._wiretap.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wiretap.stop()
        global _latest
        _latest = weakref.ref(self)

    def _heard(self, cls: type, args: tuple[Any, ...]) -> None:
        try:
            call = self._calls[cls][signature(args)]
        except (KeyError, TypeError, RuntimeError):
            call = self._unknown(cls, args)
        call.count += 1
        if call.count <= KEPT_CALLS:
            _keep(call, args)

    def _unknown(self, cls: type, args: tuple[Any, ...]) -> Call:
        calls = self._calls.setdefault(cls, {})
        try:
            key = signature(args)
            hash(key)
        except (TypeError, RuntimeError):  # an argument without hash, or a tensor subclass without shape
            key = "?"
        if key not in calls and len(calls) >= KEPT_SIGNATURES:
            key = "..."
        return calls.setdefault(key, Call(cls))


def latest() -> Tape | None:
    """The tape that stopped last in this process, while somebody holds it: `gs.check(fn)` finds its inputs there."""
    return _latest() if _latest is not None else None


def record() -> Tape:
    """Note every custom Function that runs in a `with` block; `tape.check()` then verifies them.

    >>> with record() as tape:
    ...     pass
    >>> str(tape)
    'no custom Function ran'
    """
    return Tape()


def _keep(call: Call, args: tuple[Any, ...]) -> None:
    call.lines[_caller()] += 1
    leaves = [v for v in pytree.tree_leaves(list(args)) if isinstance(v, Tensor)]
    if any(not _plain(t) for t in leaves):
        return
    elements = sum(t.numel() for t in leaves)
    if call.examples and elements > _SMALL:
        return
    with torch.no_grad(), contextlib.suppress(RuntimeError):  # out of memory: the call stays counted
        if elements > FULL:
            args, call.scaled = scaled(args)
        seen: dict[int, Tensor] = {}
        call.examples.append(tuple(_copied(value, seen) for value in args))


def _copied(value: Any, seen: dict[int, Tensor]) -> Any:
    """Tensors by value, also in lists and dicts; modules and other objects stay what they are: they live on."""

    def copy(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        if id(item) not in seen:
            seen[id(item)] = item.detach().clone().requires_grad_(item.requires_grad)
        return seen[id(item)]

    return pytree.tree_map(copy, value)


def _plain(tensor: Tensor) -> bool:
    if type(tensor) is not Tensor and not isinstance(tensor, torch.nn.Parameter):
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _caller() -> str:
    """`train.py:12`, or `cell 3:2` in a notebook: the innermost line outside torch, gradsmith and the Function's own file machinery."""
    for frame in _frames():
        path = frame.f_code.co_filename
        if not path.startswith(_OWN) and "/torch/" not in path:
            cell = cell_number(path)
            return f"{Path(path).name if cell is None else f'cell {cell}'}:{frame.f_lineno}"
    return "?"


def _short_name(cls: type) -> str:
    # Loaded when something ran: a test session in which nothing does pays for no more of gradsmith than this folder.
    from gradsmith.lab.target import short_name

    return short_name(cls)


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


_latest: weakref.ref[Tape] | None = None
_OWN = str(Path(__file__).parents[1])

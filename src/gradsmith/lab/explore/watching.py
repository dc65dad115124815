"""One forward and backward under the tape, before anything else: what has to be known before the others can run.

Does the subject free memory (then every later run is guarded), does forward draw random numbers, and how many operators
are dispatched (the compiler unrolls every loop).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.measure.memory import FreedMemory, whole
from gradsmith.lab.process import device
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import has_memory


@dataclass(frozen=True)
class Watched:
    """What was seen. `operators` are those of forward and backward, torch's own Python code included."""

    frees: bool = False
    draws: bool = False
    operators: int = 0
    outputs: int = 0  # elements


def guard() -> OperationTape:
    """Raises FreedMemory where an operator would read a tensor whose storage was freed, which ends the process."""
    return OperationTape(aten_only=True, keep=False, around=_refusing)


def _refusing(func: Any, args: Any, kwargs: Any) -> Any:
    _refuse_freed(func, _tensors((args, kwargs)))
    return func(*args, **kwargs)


_HELD = 64 << 20  # bytes of storages that are held


class _Watch:
    """Runs operators and notes what `Watched` tells. Storages are held meanwhile, so that a freed one can be told from one
    that ended; where they would be too much together, further ones are only looked at before each operator."""

    def __init__(self) -> None:
        self.refused = False
        self.draws = False
        self.operators = 0
        self._storages: dict[int, tuple[Any, int]] = {}
        self._held = 0
        self._passing: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._made: dict[int, int] = {}  # of those that an operator returned first: whole, while they have this size

    def __call__(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.operators += 1
        self.refused = self.refused or self._one_was_freed()
        # In a loop of 100,000 steps nearly all are whole, and looking closely at each took 15x as long as the loop.
        doubtful = [tensor for tensor in _tensors((args, kwargs)) if not self._is_whole(tensor)]
        self.note(doubtful)
        try:
            _refuse_freed(func, doubtful)
        except FreedMemory:
            self.refused = True
            raise
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            out = func(*args, **kwargs)
        else:
            # The tag is on attention and dropout, too, which draw nothing where the probability is 0.
            before = _random_states(args, kwargs)
            out = func(*args, **kwargs)
            after = _random_states(args, kwargs)
            self.draws = self.draws or not all(torch.equal(a, b) for a, b in zip(before, after))
        self._note_made(out)
        return out

    def _is_whole(self, tensor: Tensor) -> bool:
        storage = _plain_storage(tensor)
        return storage is not None and storage.nbytes() >= self._made.get(storage._cdata, sys.maxsize)

    def _note_made(self, out: Any) -> None:
        storage = _plain_storage(out)
        if storage is None or storage._cdata in self._storages or storage._cdata in self._passing:
            self.note(out)
        else:
            self._keep(storage, 0)
            self._made[storage._cdata] = storage.nbytes()

    def note(self, *values: Any) -> None:
        for tensor in _tensors(values):
            if tensor.layout == torch.strided and has_memory(tensor):
                with torch._C.DisableTorchFunctionSubclass():
                    storage = Tensor.untyped_storage(tensor)
                known = self._storages.get(storage._cdata) or self._passing.get(storage._cdata)
                self._keep(storage, known[1] if known is not None else 0)

    def _keep(self, storage: Any, before: int) -> None:
        key, size = storage._cdata, max(before, storage.nbytes())
        if key in self._storages or self._held + size <= _HELD:
            self._held += size if key not in self._storages else 0
            self._storages[key] = storage, size
        else:
            self._passing[key] = weakref.ref(storage, lambda _: self._forget(key)), size

    def _forget(self, key: int) -> None:
        """Another storage may come to lie where one has ended."""
        self._passing.pop(key, None)
        self._made.pop(key, None)

    def _one_was_freed(self) -> bool:
        alive = [(storage, size) for ref, size in list(self._passing.values()) if (storage := ref()) is not None]
        return any(storage.nbytes() < size for storage, size in alive)

    @property
    def frees(self) -> bool:
        held = any(storage.nbytes() < size for storage, size in self._storages.values())
        return self.refused or held or self._one_was_freed()


def watched(target: Target, arguments: Arguments, seed: int) -> Watched:
    """Run once and look. What the user's code raises is for the probes to report."""
    watch = _Watch()
    draws, outputs = False, 0
    try:
        with OperationTape(aten_only=True, keep=False, around=watch):
            run = forward(target, arguments, seed=seed)
            draws, outputs = watch.draws, sum(out.numel() for out in run.outputs)
            watch.note(list(run.passed.values()), run.outputs)
            run.gradients(run.ones())
    except Exception as error:  # any error of the user's code
        return Watched(watch.frees or isinstance(error, FreedMemory), draws or watch.draws, watch.operators, outputs)
    return Watched(watch.frees, draws, watch.operators, outputs)


def _refuse_freed(func: Any, tensors: Iterable[Tensor]) -> None:
    if getattr(func, "is_view", False):
        return  # looks at shape and strides only
    for tensor in tensors:
        if not whole(tensor):
            raise FreedMemory(f"reads memory that was freed: {func} is given a tensor of shape {tuple(tensor.shape)}")


def _plain_storage(value: Any) -> Any:
    """The storage of a plain dense tensor; None for all others, which are looked at closely."""
    if type(value) is not Tensor or value.layout != torch.strided:
        return None
    try:
        return value.untyped_storage()
    except (RuntimeError, NotImplementedError):  # functorch's wrappers have none
        return None


def _random_states(args: Any, kwargs: Any) -> list[Tensor]:
    own = [value for value in _flat((args, kwargs)) if isinstance(value, torch.Generator)]
    return [g.get_state() for g in own] or list(_tensors(device.random_state()))


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in _flat(values) if isinstance(value, Tensor)]


def _flat(value: Any) -> list[Any]:
    """What stands in lists, tuples and dicts. One list that grows, because this is asked for every operator of a run."""
    found, at = [value], 0
    while at < len(found):
        part = found[at]
        if isinstance(part, (list, tuple, dict)):
            found[at : at + 1] = part.values() if isinstance(part, dict) else part
        else:
            at += 1
    return found

"""What kernels did to memory on one example."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.conditions.uninitialised import filled
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.once import once
from gradsmith.lab.subject.foreign import runs_kernels
from gradsmith.lab.triton.events import (
    Fill,
    Filled,
    KernelLog,
    Spoil,
    Store,
    Tail,
    WrongAccess,
    kernels_logged,
    kernels_unlogged,
)
from gradsmith.lab.triton.shims import TunedChoice, installed

_MOST_STORES = 12  # lines that are asked one by one whether a gradient comes from them


@dataclass(frozen=True)
class Missed:
    """A tensor whose end no program stored."""

    name: str
    tail: Tail | None  # None where the launch had no program at all
    store: Store

    @property
    def words(self) -> str:
        if self.tail is None:
            return f"its grid has no program, and '{self.name}' is computed from what it does not store."
        if self.tail.dimension is None:
            what = f"the last {self.tail.size - self.tail.first} of {self.tail.size} elements of '{self.name}' are"
        else:
            what = f"of '{self.name}', everything from index {self.tail.first} on in dimension {self.tail.dimension} is"
        return f"{what} never stored: uninitialised memory stays there ({self.store.argument})."


@dataclass
class Witness:
    """What was seen on the example itself."""

    seen: KernelLog
    results: dict[str, Tensor]
    tails: list[Missed] = field(default_factory=list)
    stores: dict[str, list[Store]] = field(default_factory=dict)  # by result: the lines that filled it
    backward: list[Store] = field(default_factory=list)  # every line that stored while backward ran, the last one last


def interprets(lab: Lab) -> bool:
    """Whether there is anything to see: kernels, under our interpreter."""
    return installed() and runs_kernels(lab.target)


@once
def witness(lab: Lab) -> Witness:
    """One forward and backward on the example; memory that nobody writes is NaN."""
    with kernels_logged() as seen:
        results, during_backward = _run(lab)
    found = Witness(seen, results, backward=[s for f in during_backward.filled.values() for s in f.stores])
    for name, tensor in results.items():
        known = seen.filled.get(tensor.untyped_storage().data_ptr())
        if known is not None and known.stores:
            found.stores[name] = known.stores
            if (tail := _tail(name, tensor, known)) is not None:
                found.tails.append(tail)
    spoilt = [name for name, t in results.items() if bool(t.isnan().any())]
    if spoilt and not found.tails:
        idle = [Store(k, t.path, t.line, "") for k, t in seen.traffic.items() if t.idle]
        found.tails += _inner_tails(seen) or [Missed(spoilt[0], None, kernel) for kernel in idle]
    return found


def events(lab: Lab, *kinds: str) -> list[tuple[WrongAccess, bool]]:
    """Events of these kinds, and whether they happened on the example itself; the others on explored examples.

    Of those, tensors with other strides are left out: what becomes of the numbers there is the matter of layouts.
    """
    if not interprets(lab):
        return []
    here = witness(lab).seen.events
    own = [(e, True) for e in here.values() if e.kind in kinds]
    return own + [(e, False) for key, e in lab.kernel_events.items() if e.kind in kinds and e.whole and key not in here]


def filled_by(lab: Lab, name: str) -> list[Store]:
    """The lines of kernels that stored a gradient; where torch computed on what they stored, those that it comes from."""
    if not interprets(lab):
        return []
    seen = witness(lab)
    if name in seen.stores or name not in seen.results or bool(seen.results[name].isnan().any()):
        return seen.stores.get(name, [])
    suspects = list(dict.fromkeys(seen.backward))[-_MOST_STORES:]
    return [store for store in suspects if _comes_from(lab, name, store)]


def _comes_from(lab: Lab, name: str, store: Store) -> bool:
    """Whether a result is NaN once this line stores NaN."""
    Spoil.lines = frozenset([(store.path, store.line)])
    try:
        with kernels_unlogged():
            after = _results(lab)
    finally:
        Spoil.lines = frozenset()
    return name in after and bool(after[name].isnan().any())


def undefined_lanes(lab: Lab) -> list[tuple[str, int, str, str]]:
    """Loads (file, line, kernel, argument) whose masked lanes change a result once they hold something else than zero."""
    if not interprets(lab):
        return []
    suspects = witness(lab).seen.undefined
    if not suspects or not _changes(lab, set(suspects)):
        return []
    guilty = [place for place in suspects if len(suspects) == 1 or _changes(lab, {place})]
    return [(*place, *suspects[place]) for place in guilty]


def configurations_differ(lab: Lab) -> list[tuple[str, str]]:
    """(kernel, result) where an autotuned kernel gives another result with its largest blocks than with its smallest."""
    if not interprets(lab):
        return []
    before = witness(lab).results
    if not TunedChoice.tuned:
        return []
    TunedChoice.number = -1
    try:
        after = _results(lab)
    finally:
        TunedChoice.number = 0
    kernels = ", ".join(sorted(TunedChoice.tuned))
    return [(kernels, name) for name, old in before.items() if name in after and not lab.close(old, after[name])]


def _changes(lab: Lab, lines: set[tuple[str, int]]) -> bool:
    Fill.lines = lines
    try:
        after = _results(lab)
    finally:
        Fill.lines = None
    before = witness(lab).results
    return any(name in after and not lab.close(old, after[name]) for name, old in before.items())


def _results(lab: Lab) -> dict[str, Tensor]:
    return _run(lab)[0]


def _run(lab: Lab) -> tuple[dict[str, Tensor], KernelLog]:
    """Outputs and gradients by name, the very tensors (who filled them is known by their address), and what backward did."""
    with lab.budget.for_diagnosis(), filled():  # a few runs of its own, whatever else was left out
        run = lab.precise_run()
    found: dict[str, Tensor] = {name: out.detach() for name, out in zip(run.output_names, run.outputs)}
    v = run.normal(lab.generator(23))
    positions = list(run.leaves)
    outputs, leaves = [run.outputs[o] for o in v], [run.leaves[p] for p in positions]
    grads: Any = ()
    with (
        kernels_logged() as seen,
        filled(),
        contextlib.suppress(Exception),
    ):  # a backward that raises is told by its own rule
        grads = gradients(outputs, leaves, list(v.values()))
    names = {leaf.position: leaf.name for leaf in lab.precise[1].differentiable}
    found |= {names[p]: g for p, g in zip(positions, grads) if g is not None and p in names}
    return {name: t for name, t in found.items() if t.is_floating_point()}, seen


def _inner_tails(seen: KernelLog) -> list[Missed]:
    """Tensors between two steps whose end no program stored, and which were allocated without being filled."""
    known = [f for f in seen.filled.values() if f.unset]
    return [Missed(f.stores[-1].argument, tail, f.stores[-1]) for f in known if (tail := f.tail(f.shape))]


def _tail(name: str, tensor: Tensor, known: Filled) -> Missed | None:
    """The end of a result that is still the NaN it was allocated with."""
    if not tensor.is_contiguous() or tensor.storage_offset() or tensor.element_size() != known.item:
        return None
    tail = known.tail(tuple(tensor.shape))
    if tail is None:
        return None
    missing = ~torch.from_numpy(known.written[: tensor.numel()])
    return Missed(name, tail, known.stores[-1]) if bool(tensor.reshape(-1)[missing].isnan().all()) else None

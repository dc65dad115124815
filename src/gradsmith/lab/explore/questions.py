"""What one run tells about its inputs: each question is a short function over the tape."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsmith.lab.explore.tape import OperationTape, Seen
from gradsmith.lab.subject.arguments import Leaf
from gradsmith.source import knowledge as know

_SPLITS = frozenset({"chunk", "tensor_split"})
_CUTS = {"detach": "detach", ".data": ".data", "item": "item", "tolist": "tolist", "numpy": "numpy"}


def looked_at(tape: OperationTape) -> set[int]:
    """Positions of the inputs that forward computes with, or asks anything. What it only keeps for backward is not among them.

    Nor is a flat tensor of parameters where forward computes with the module that holds them, as views of it.
    """
    met = {seen.memory for call in tape.calls() for seen in call.operands}
    return {position for position, own in tape.inputs.items() if own & met}


@dataclass(frozen=True)
class Compared:
    """What forward itself asks of its indices, by position of the input."""

    numbers: dict[int, list[int]] = field(default_factory=dict)  # that it compares them with
    accumulated: set[int] = field(default_factory=set)  # whether it adds up what they point at


def compared(tape: OperationTape, leaves: Iterable[Leaf]) -> Compared:
    """A label that is compared with -100 may be -100, and an index that forward accumulates by may occur twice, even
    where the example shows neither.
    """
    found = Compared()
    indices = [x for x in leaves if x.tensor.dtype in (torch.int64, torch.int32) and x.tensor.numel() > 1]
    for call in tape.calls({"eq", "ne"}):
        if len(call.args) == 2 and type(call.args[1]) is int and (leaf := _same_numbers(call.args[0], indices)):
            numbers = found.numbers.setdefault(leaf.position, [])
            if call.args[1] not in numbers:
                numbers.append(call.args[1])
    for call in tape.calls(know.ACCUMULATE):
        found.accumulated.update(leaf.position for s in call.operands if (leaf := _same_numbers(s, indices)))
    return found


def overwritten_by(tape: OperationTape, leaves: Iterable[Leaf]) -> set[int]:
    """Positions of the ids at which forward writes without adding up: what repeats there, torch itself leaves open."""
    indices = [x for x in leaves if not x.tensor.dtype.is_floating_point and x.tensor.numel()]
    found: set[int] = set()
    for call in tape.calls(know.SCATTERS):
        adds = call.kwargs.get("accumulate") is True or True in call.args or "reduce" in call.kwargs
        if adds and call.name != "put":  # whose flag is an option that is tried, too
            continue
        operands = call.operands[1:]
        found.update(leaf.position for s in operands if (leaf := _same_numbers(s, indices)))
    return found


def bounds_of_ids(tape: OperationTape, leaves: Iterable[Leaf]) -> dict[int, list[int]]:
    """The whole numbers on both sides of the bounds with which forward compares its ids."""
    indices = [x for x in leaves if x.tensor.dtype in (torch.int64, torch.int32) and x.tensor.numel() > 1]
    found: dict[int, list[int]] = {}
    for call in tape.calls(know.COMPARISONS - {"eq", "ne", "not_equal"}):
        if len(call.args) == 2 and type(call.args[1]) is int and (leaf := _same_numbers(call.args[0], indices)):
            numbers = found.setdefault(leaf.position, [])
            numbers.extend(n for n in range(call.args[1] - 1, call.args[1] + 2) if n not in numbers)
    return found


def _same_numbers(seen: Any, leaves: Sequence[Leaf]) -> Leaf | None:
    """The input that this is, or is a view or copy of with the same numbers."""
    if not isinstance(seen, Seen) or seen.dtype.is_floating_point or seen.dtype.is_complex:
        return None
    values = seen.values
    for leaf in leaves:
        mine = leaf.tensor.detach()
        if seen.shape.numel() != mine.numel():
            continue
        if values is None and leaf.position in seen.origins:  # too large to be kept
            return leaf
        if values is not None and torch.equal(values.reshape(-1), mine.reshape(-1).to(values.dtype)):
            return leaf
    return None


def uneven(tape: OperationTape) -> bool:
    """Whether forward cuts a tensor into parts of different sizes, with `chunk` or by slices that add up to it."""
    if any(len({part.shape for part in call.results}) > 1 for call in tape.calls(_SPLITS)):
        return True
    return any(_add_up(base, parts) for base, parts in _slices(tape))


def cuts(tape: OperationTape) -> bool:
    """Whether forward takes parts of a tensor: only then can another size be cut unevenly."""
    return any(tape.calls(_SPLITS)) or any(len(parts) > 1 for _, parts in _slices(tape))


def _slices(tape: OperationTape) -> Iterator[tuple[torch.Size, list[torch.Size]]]:
    """Each tensor that is indexed, and the shapes of what is taken from it."""
    taken: dict[int, tuple[torch.Size, list[torch.Size]]] = {}
    for call in tape.calls({"getitem"}):
        base = call.args[0]
        if isinstance(base, Seen) and call.results:
            taken.setdefault(base.memory, (base.shape, []))[1].append(call.results[0].shape)
    yield from taken.values()


def _add_up(base: torch.Size, parts: Sequence[torch.Size]) -> bool:
    """Are two of the parts the whole, without being halves of it?"""
    for a, b in itertools.combinations(set(parts), 2):
        differing = [d for d, (m, n) in enumerate(zip(a, b)) if m != n] if len(a) == len(b) == len(base) else []
        if len(differing) == 1 and a[differing[0]] + b[differing[0]] == base[differing[0]]:
            return True
    return False


def steps(tape: OperationTape, position: int) -> bool:
    """Whether forward rounds, or takes the sign of, what it computes from this input."""
    for call in tape.calls():
        if position not in call.origins:
            continue
        whole = any(_is_whole(made.dtype) for made in call.results)
        if call.name in know.STEPS_ON_THE_WAY or (call.name in know.CASTS and whole):
            return True
    return False


def _is_whole(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool


def types_of_numbers(tape: OperationTape) -> set[torch.dtype]:
    """The floating types of whatever forward and backward computed with, or made."""
    met = (seen for op in tape.operations for seen in (*op.operands, *op.results))
    return {seen.dtype.to_real() for seen in met if seen.dtype.is_floating_point or seen.dtype.is_complex}


def blamed(tape: OperationTape) -> frozenset[int]:
    """The inputs that took part in the call that raised: what was tried for the others need not be varied."""
    return next((call.related for call in tape.calls() if call.raised and call.related), frozenset())


def clamps(tape: OperationTape) -> bool:
    return any(tape.calls(know.CLAMPS))


def clamps_something(tape: OperationTape) -> bool:
    """Whether a clamp changes what it is given, or would, where the tape hands it through."""
    return any(
        isinstance(call.args[0], Seen)
        and call.results
        and call.args[0].values is not None
        and call.results[0].values is not None
        and not torch.equal(call.args[0].values, call.results[0].values)
        for call in tape.calls(know.CLAMPS)
        if call.args
    )


def leaves_the_graph(tape: OperationTape) -> list[str]:
    """The calls that take values out of the graph: whoever writes that means another gradient than forward's."""
    found: dict[str, None] = {}
    for call in tape.calls({*_CUTS, "_set_grad_enabled"}):
        name = _CUTS.get(call.name, "no_grad")
        if name == "detach" and call.inplace:
            found["detach_"] = None
        elif not call.inplace:  # writing `.data` cuts nothing
            found[name] = None
    return list(found)

"""Other options: optional arguments left out, flags flipped, negative dims, larger strides, other reductions, labels to ignore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from gradsmith.lab.explore.questions import compared, looked_at
from gradsmith.lab.explore.variations.judging import Variation
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import foreign
from gradsmith.source.lexicon import is_a

_REDUCTIONS = ("mean", "sum", "none")


def variations(lab: Lab) -> Iterator[Variation]:
    arguments = lab.precise[1]
    names = dict(_named(lab, arguments))
    fixed = foreign(lab)  # other dims and strides make a kernel read elsewhere, which nothing checks
    # A forward that only keeps an input for backward takes None for it, too, and means nothing by it.
    kept = {leaf.position for leaf in arguments.leaves} - looked_at(lab.tape)
    for i, value in enumerate(arguments.flat):
        name = names.get(i)
        if name is None or i in kept:
            continue
        for other, words, doubtful in _others(name, value, arguments, fixed=fixed):
            yield Variation(f"with {words}", _with(arguments, i, other), "options", name, doubtful)
    if not fixed:
        yield from _sentinels(lab)


def _sentinels(lab: Lab) -> Iterator[Variation]:
    """A label that is to be ignored, a row that is padding: forward compares with it, and the example has none."""
    arguments = lab.precise[1]
    numbers = compared(lab.tape, arguments.leaves).numbers
    for leaf in arguments.leaves:
        present = leaf.tensor.detach()
        for number in numbers.get(leaf.position, []):
            if number < 0 and not bool((present == number).any()):
                flat = present.reshape(-1).clone()
                flat[-1] = number
                changed = arguments.replaced({leaf.position: flat.reshape(present.shape)})
                yield Variation(f"with {number} in '{leaf.name}'", changed, "options", leaf.name, doubtful=True)


def _others(name: str, value: Any, arguments: Arguments, *, fixed: bool) -> Iterator[tuple[Any, str, bool]]:
    if isinstance(value, bool):
        # Some flags are there to change what backward returns, not what forward computes.
        if not is_a(name, "gradient control"):
            yield not value, f"{name}={not value}", True
    elif isinstance(value, int):
        yield from () if fixed else _integers(name, value, arguments)
    elif isinstance(value, float):
        # At 0 and 1 a missing factor does not show.
        if value in (0.0, 1.0):
            yield 0.7, f"{name}=0.7", True
    elif isinstance(value, str) and value in _REDUCTIONS:
        yield from ((other, f"{name}={other!r}", False) for other in _REDUCTIONS if other != value)
    elif isinstance(value, Tensor) and len(arguments.differentiable) > 1:
        yield None, f"{name}=None", False


def _integers(name: str, value: int, arguments: Arguments) -> Iterator[tuple[Any, str, bool]]:
    if is_a(name, "the dim"):
        ranks = [leaf.tensor.ndim for leaf in arguments.differentiable[:1]]
        for rank in ranks:
            others = {value - rank if value >= 0 else value + rank, *range(rank)} - {value}
            yield from ((other, f"{name}={other}", False) for other in sorted(others))
    elif is_a(name, "convolution option"):
        yield value + 1, f"{name}={value + 1}", False


def _named(lab: Lab, arguments: Arguments) -> Iterator[tuple[int, str]]:
    """Names of the flat values; only those that are an argument of their own, not inside a container."""
    args, kwargs = arguments.with_tensors({})
    if arguments.spec.num_leaves != len(args) + len(kwargs):
        return  # containers: positions no longer tell the name
    for i, _ in enumerate(args):
        if i < len(lab.target.names) and not lab.target.names[i].endswith("*"):
            yield i, lab.target.names[i]
    yield from ((len(args) + k, key) for k, key in enumerate(kwargs))


def _with(arguments: Arguments, position: int, value: Any) -> Arguments:
    flat = [value if i == position else v for i, v in enumerate(arguments.flat)]
    kept = [leaf for leaf in arguments.leaves if leaf.position != position]
    # None is a leaf of torch's pytrees, so that the nesting keeps its places.
    return Arguments(flat, arguments.spec, kept)

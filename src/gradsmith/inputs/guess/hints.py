"""What an error says about the value that would have been right: none was given, a matrix has to be square, integers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from torch import Tensor

from gradsmith.inputs.guess.functions import Written
from gradsmith.inputs.guess.proposals import Proposal, ranked
from gradsmith.lab.process import torch_says
from gradsmith.source.loaded import line_of

_SQUARES = frozenset({"d d", "batch d d", "lead lead", "o o"})
_WANTED: dict[torch_says.Wanted, Callable[[Proposal], bool]] = {
    "square": lambda p: p.form in _SQUARES,
    "integer": lambda p: p.kind in ("integer", "integers"),
    "channels": lambda p: p.form == "channels",
    "bool": lambda p: p.kind == "bool",
    "complex": lambda p: p.kind == "complex",
}
_DEMOTED = 1.5


@dataclass(frozen=True)
class Hint:
    """What to try first for one input."""

    position: int
    what: str
    wanted: Callable[[Proposal], bool]

    def heeded(self, options: list[Proposal]) -> list[Proposal]:
        """The same options, those that the hint asks for in front."""
        fitting = [p for p in options if self.wanted(p)]
        if not fitting:
            return options
        start = min(p.cost for p in fitting)
        first = [replace(p, cost=p.cost - start) for p in fitting]
        return ranked([*first, *(replace(p, cost=p.cost + _DEMOTED) for p in options if not self.wanted(p))])


def hints(
    error: BaseException,
    names: Sequence[str],
    values: Sequence[Any],
    chosen: Sequence[Proposal],
    blamed: frozenset[int],
) -> list[Hint]:
    """What the error suggests; `blamed` are the inputs of the operation that raised it."""
    found = [Hint(i, "given", _given) for i in missing(error, names, values)]
    found += [Hint(i, "tensor", _tensor) for i in _should_be_tensors(error, values)]
    if torch_says.wants_a_number(error):
        named = [i for i in _mentioned(error, names) if chosen[i].is_tensor and not chosen[i].gradient]
        found += [Hint(i, "number", _whole_number) for i in named]
    if torch_says.wants_whole_numbers(error):
        given = [i for i, value in enumerate(values) if type(value) is float]
        read = [i for i in _mentioned(error, names) if i in given]
        found += [Hint(i, "whole number", _whole_number) for i in read or given]
    if torch_says.is_no_operand(error, Written.__name__):
        found += [Hint(i, "operand", _operand) for i, v in enumerate(values) if isinstance(v, Written)]
    text = str(error)
    named = sorted(named_in(text, names))
    what = torch_says.wanted_instead(text)
    if what is not None:
        wanted = _WANTED[what]
        places = named or sorted(blamed) or _mentioned(error, names)
        # An input with a gradient cannot hold integers.
        open_ = [i for i in places if chosen[i].is_tensor and not wanted(chosen[i])]
        kept = open_ if what in ("square", "channels") else [i for i in open_ if not chosen[i].gradient] or open_[-1:]
        found += [Hint(i, what, wanted) for i in kept]
    return found


def named_in(text: str, names: Sequence[str]) -> frozenset[int]:
    """The inputs that a message names."""
    return frozenset(i for i, name in enumerate(names) if re.search(rf"\b{re.escape(name)}\b", text))


def _tensor(proposal: Proposal) -> bool:
    return proposal.is_tensor


def _whole_number(proposal: Proposal) -> bool:
    return not proposal.is_tensor and type(proposal.value) is int


def _operand(proposal: Proposal) -> bool:
    """What can be calculated with: everything but functions, words and None."""
    return proposal.is_tensor or isinstance(proposal.value, (int, float))


def _should_be_tensors(error: BaseException, values: Sequence[Any]) -> list[int]:
    """The one plain value of which something was read or wanted that only tensors have; nothing where it may be several."""
    if isinstance(error, AttributeError):
        read = hasattr(Tensor, error.name or "")
        places = [i for i, v in enumerate(values) if read and v is getattr(error, "obj", values) and v is not None]
    else:
        kind = torch_says.is_not_a_tensor(error)
        places = [i for i, v in enumerate(values) if kind and type(v).__name__ == kind]
    return places if len(places) == 1 and not isinstance(values[places[0]], Tensor) else []


def _given(proposal: Proposal) -> bool:
    return proposal.is_tensor or callable(proposal.value)


def missing(error: BaseException, names: Sequence[str], values: Sequence[Any]) -> list[int]:
    """Positions of inputs that are None and that the error blames, by name or by the line it was raised in.

    >>> missing(AssertionError("bias must be provided"), ["x", "bias"], [1.0, None])
    [1]
    """
    empty = {name: i for i, (name, value) in enumerate(zip(names, values)) if value is None}
    named = [i for name, i in empty.items() if re.search(rf"\b{re.escape(name)}\b", str(error))]
    if named or not empty or "None" not in str(error):
        return named
    for line, here in _lines(error):  # the innermost line that reads one of them
        read = [n for n in empty if re.search(rf"\b{re.escape(n)}\b", line) and here.get(n, empty) is None]
        if read:
            return [empty[name] for name in read]
    return []


def _mentioned(error: BaseException, names: Sequence[str]) -> list[int]:
    """Inputs, or what is called after them (`mask_chunk`), in the innermost line that has any."""
    for line, _ in _lines(error):
        read = [i for i, name in enumerate(names) if re.search(rf"\b{re.escape(name)}(_\w+)?\b", line)]
        if read:
            return read
    return []


def _lines(error: BaseException) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(source, local names) of each call on the way to the error, the innermost first."""
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        code = frame.tb_frame.f_code
        first = last = frame.tb_lineno
        if hasattr(code, "co_positions"):  # since Python 3.11
            place = next(itertools.islice(code.co_positions(), frame.tb_lasti // 2, None), (None, None))
            first, last = place[0] or first, place[1] or last
        lines = [line_of(code.co_filename, number) for number in range(first, last + 1)]
        yield "".join(lines), frame.tb_frame.f_locals

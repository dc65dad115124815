"""Whether a check fits into memory, asked before it starts: a process that is ended in the middle tells its user nothing."""

from __future__ import annotations

from gradsmith.lab.lab import LARGE, size_of
from gradsmith.lab.process.memory_left import gib, memory_left
from gradsmith.lab.subject.arguments import Arguments

# Measured with benchmarks/large_inputs.py: the most that is in use at a time, over the data.
_OF_LARGE = 12  # of inputs that are judged as they are
_OF_OTHERS = (
    24  # of inputs or outputs in double precision: at least, since small ones are given more runs beside each other
)
_DOUBLE = 8  # bytes


def beyond_memory(arguments: Arguments, outputs: int = 0) -> str:
    """Why these inputs cannot be checked here, in one sentence; empty where they can.

    `outputs` are the elements that forward returned, once that is known: few inputs may make many of them.
    """
    needed, left = _needed(arguments, outputs), memory_left()
    if left is None or needed <= left.bytes:
        return ""
    remedy = f"pass smaller inputs, or {left.remedy}" if left.remedy else "pass smaller inputs"
    size = gib(size_of(arguments))
    return f"a check of {size} of inputs takes about {gib(needed)} of memory, and {left.words}; {remedy}"


def _needed(arguments: Arguments, outputs: int) -> int:
    if (size := size_of(arguments)) >= LARGE:
        return _OF_LARGE * size
    tensors = {id(leaf.tensor): leaf.tensor for leaf in arguments.leaves}
    return _OF_OTHERS * _DOUBLE * max(sum(t.numel() for t in tensors.values()), outputs)

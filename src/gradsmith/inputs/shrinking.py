"""Recorded inputs made smaller where slicing does not do: along the sizes that forward leaves free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradsmith.inputs.scaling import CHECKED
from gradsmith.lab.explore.sizes import Size, free_sizes, resized
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target


def shrunk(target: Target, args: tuple[Any, ...], seed: int, wanted: int = CHECKED) -> tuple[tuple[Any, ...], str]:
    """The arguments with about `wanted` elements, and how: `'sizes 4096 to 64'`; as they are where no size is free.

    The largest size is halved as long as there are too many elements. Values are redrawn, indices point into what is left.
    """
    arguments = Arguments.of(args, {}, target.names)
    free = [(size, size.value) for size in free_sizes(target, arguments, seed) if size.value > 1]
    while free and sum(leaf.tensor.numel() for leaf in arguments.leaves) > wanted:
        size, before = max(free, key=lambda pair: pair[0].value)
        free.remove((size, before))
        if (to := _half(size)) < size.value:
            arguments = resized(arguments, size, to, seed)
            free.append((replace(size, value=to), before))
    changed = {times * before: times * size.value for size, before in free for _, _, times in size.dims}
    words = ", ".join(f"{n} to {m}" for n, m in sorted(changed.items()) if n != m)
    return (arguments.with_tensors({})[0], f"sizes {words}") if words else (args, "")


def _half(size: Size) -> int:
    return max(size.least, size.value // 2 // size.multiple_of * size.multiple_of)

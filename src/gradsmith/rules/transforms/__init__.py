"""Rules about what becomes of a gradient under compile, vmap, autocast, checkpointing and several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.lab.lab import Lab
    from gradsmith.source.outside import Kind, Outside

# Another result under a condition: a mere consequence where the gradient does not even hold in eager mode.
MISMATCHES = (
    "compile-mismatch",
    "vmap-mismatch",
    "checkpoint-mismatch",
    "hook-mismatch",
    "thread-bound",
    "distributed-mismatch",
)


def used_outside(lab: Lab, *kinds: Kind, methods: tuple[str, ...] = ("forward", "setup_context", "backward")) -> Outside | None:  # fmt: skip
    """The likeliest reason in the source for a different result: the first use of something outside, of the first kind there is."""
    from gradsmith.source.loaded import model_of
    from gradsmith.source.outside import outside

    model = model_of(lab.target.function) if lab.target.function is not None else None
    return next(iter(outside(model, *kinds, methods=methods)), None) if model is not None else None

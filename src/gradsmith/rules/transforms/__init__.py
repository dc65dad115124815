"""Rules about what becomes of a gradient under compile, vmap, autocast, checkpointing and several processes."""

from __future__ import annotations

# Another result under a condition: a mere consequence where the gradient does not even hold in eager mode.
MISMATCHES = (
    "compile-mismatch",
    "vmap-mismatch",
    "checkpoint-mismatch",
    "hook-mismatch",
    "thread-bound",
    "distributed-mismatch",
)

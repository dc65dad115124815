"""Fill uninitialised memory with NaN, as PyTorch does in deterministic mode, and see whether it shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from gradsmith.lab.lab import Lab
from gradsmith.lab.process import torch_says


def poisoned(lab: Lab) -> Iterator[tuple[str, str]]:
    """(name, kind) of every result that is NaN then, and was not before."""
    run = lab.run()
    v = run.normal(lab.generator(19))
    before = run.gradients(v)
    with filled():
        again = lab.run()
        after = again.gradients(v)
    for name, old, new in zip(run.output_names, run.outputs, again.outputs):
        if old.is_floating_point() and bool(new.isnan().any()) and not bool(old.isnan().any()):
            yield name, "the output"
    for leaf in run.arguments.differentiable:
        old_grad, new_grad = before[leaf.position], after[leaf.position]
        if old_grad is not None and new_grad is not None and bool((new_grad.isnan() & ~old_grad.isnan()).any()):
            yield leaf.name, "the gradient of"


@contextlib.contextmanager
def filled() -> Iterator[None]:
    """What torch.empty returns inside the block is NaN."""
    mode, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    settings: Any = torch.utils.deterministic  # its attributes are properties, which torch's stubs do not show
    fill = settings.fill_uninitialized_memory
    settings.fill_uninitialized_memory = True
    torch_says.set_deterministic(True, warn_only=True)
    try:
        yield
    finally:
        torch_says.set_deterministic(mode, warn_only=warn_only)
        settings.fill_uninitialized_memory = fill

"""Fill uninitialised memory with NaN, as PyTorch does in deterministic mode, and see whether it shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.lab import Lab
from gradsmith.lab.process import torch_says
from gradsmith.lab.run import Run, forward
from gradsmith.source.knowledge import UNWRITTEN

Results = dict[tuple[str, str], Tensor]


def poisoned(lab: Lab) -> Iterator[tuple[str, str]]:
    """(name, kind) of every result that is NaN then, and was not before."""
    run = lab.run()
    v = run.normal(lab.generator(19))
    before = _results(run, run.gradients(v))
    with filled():
        again = lab.run()
        after = _results(again, again.gradients(v))
    if any(bool(old.isnan().any()) for old in before.values()):
        # gradsmith itself fills memory with NaN, and torch.empty may hand out what it freed.
        before = _with_zeros(lab, v)
    for key, new in after.items():
        if key in before and bool((new.isnan() & ~before[key].isnan()).any()):
            yield key


def _results(run: Run, gradients: Mapping[int, Tensor | None]) -> Results:
    outputs = {(name, "the output"): out for name, out in zip(run.output_names, run.outputs)}
    leaves = {leaf.position: leaf.name for leaf in run.arguments.differentiable}
    found = {(leaves[n], "the gradient of"): grad for n, grad in gradients.items() if n in leaves and grad is not None}
    return {**outputs, **found}


def _with_zeros(lab: Lab, v: dict[int, Tensor]) -> Results:
    """The same where torch.empty gives zeros."""

    def zeroed(func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        return result.zero_() if func.overloadpacket.__name__ in UNWRITTEN else result

    tape = OperationTape(around=zeroed, aten_only=True, keep=False)
    run = forward(lab.target, lab.arguments, seed=lab.settings.seed, classes=lab.classes, tape=tape)
    with tape:
        return _results(run, run.gradients(v))


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

"""Any cell, any layout, any option: the values and gradients of autograd on the plain loop."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from gradsmith.recurrent import plan, scan

from .random_cells import Run, runs


def outcome(run: Run, backend: str) -> list[Tensor]:
    x, state = run.x.detach().requires_grad_(), tuple(s.detach().requires_grad_() for s in run.state)
    (y, first), last = scan(run.cell, x, state, backend=backend, **run.options)
    outputs = [y, first, *last]
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(o.shape, generator=generator, dtype=o.dtype) for o in outputs]
    sources = [x, *state, *run.cell.parameters()]
    gradients = torch.autograd.grad(outputs, sources, weights, allow_unused=True, materialize_grads=True)
    return [*(o.detach() for o in outputs), *gradients]


def agrees_with_the_loop(run: Run) -> None:
    torch.set_num_threads(run.threads)
    try:
        torch.testing.assert_close(outcome(run, "auto"), outcome(run, "loop"), rtol=1e-8, atol=1e-9)
    finally:
        torch.set_num_threads(1)


@settings(max_examples=12)
@given(run=runs())
@pytest.mark.filterwarnings("ignore:.*runs as a Python loop")
def test_a_random_cell_agrees_with_the_loop(run: Run) -> None:
    agrees_with_the_loop(run)


@pytest.mark.deep
@settings(max_examples=300)
@given(run=runs())
@pytest.mark.filterwarnings("ignore:.*runs as a Python loop")
def test_many_random_cells_agree_with_the_loop(run: Run) -> None:
    agrees_with_the_loop(run)


@settings(max_examples=8)
@given(run=runs())
@pytest.mark.filterwarnings("ignore:.*runs as a Python loop")
def test_a_random_cell_is_planned(run: Run) -> None:
    """Otherwise the test above compares a loop with itself."""
    assert plan(run.cell, run.x, run.state).backend != "loop"

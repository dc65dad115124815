"""Every cell a user may write: same values and gradients as the loop, as close to float64 as the float32 loop is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from gradsmith.recurrent import plan, scan

from .user_cells import CELLS

QUICK = [(1, 1, 3, 4), (6, 3, 7, 13)]  # T, B, I, H
DEEP = [(7, 1, 5, 8), (5, 8, 16, 16), (9, 5, 4, 37)]
SHAPES = [*QUICK, *(pytest.param(shape, marks=pytest.mark.deep) for shape in DEEP)]


def outcome(cell: Any, x: torch.Tensor, state: Any, backend: str) -> list[torch.Tensor]:
    x = x.detach().requires_grad_()
    state = pytree.tree_map(lambda leaf: leaf.detach().requires_grad_(), state)
    torch.manual_seed(3)  # random cells draw the same numbers on every backend
    y, last = scan(cell, x, state, backend=backend)
    outputs = [leaf for leaf in pytree.tree_leaves((y, last)) if leaf.requires_grad]
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(leaf.shape, generator=generator, dtype=torch.float64).to(leaf.dtype) for leaf in outputs]
    sources = [x, *pytree.tree_leaves(state), *cell.parameters()]
    gradients = torch.autograd.grad(outputs, sources, weights, allow_unused=True)
    zeros = [torch.zeros_like(s) if g is None else g for s, g in zip(sources, gradients)]
    return [*(leaf.detach() for leaf in pytree.tree_leaves((y, last))), *zeros]


def build(name: str, shape: tuple[int, int, int, int]) -> tuple[Any, torch.Tensor, Any]:
    steps, batch, i, h = shape
    torch.manual_seed(11)
    user = CELLS[name]
    cell = user.make(i, h)
    x = torch.randn(steps, batch, i)
    state = pytree.tree_map(lambda leaf: 0.5 * torch.randn_like(leaf), user.states(batch, h))
    return cell, x, state


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CELLS)
def test_agrees_with_the_loop(name: str, shape: tuple[int, int, int, int]) -> None:
    cell, x, state = build(name, shape)
    ours = outcome(cell, x, state, "auto")
    loop = outcome(cell, x, state, "loop")
    if name in ("zoneout_train", "spikes_as_float"):
        exact = loop
    else:
        wide = CELLS[name].make(shape[2], shape[3]).double()
        wide.load_state_dict(cell.double().state_dict())
        exact = outcome(wide, x.double(), pytree.tree_map(lambda leaf: leaf.double(), state), "loop")
    for got, rounded, true in zip(ours, loop, exact):
        noise = (rounded.double() - true).abs().max()
        assert (got.double() - true).abs().max() <= 6 * noise + 4e-6 * (1 + true.abs().max())


@pytest.mark.parametrize("name", CELLS)
def test_runs_on_the_backend_it_should(name: str) -> None:
    cell, x, state = build(name, QUICK[0])
    chosen = plan(cell, x, state)
    assert chosen.backend == CELLS[name].backend, str(chosen)
    assert ("float32 loop" in str(chosen)) == (name == "spikes_as_float")


def test_most_cells_run_in_c() -> None:
    assert len(CELLS) >= 25
    assert sum(cell.backend == "c" for cell in CELLS.values()) >= 20

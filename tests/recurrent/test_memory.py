"""What is held between forward and backward: never more than the user's own loop holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith import recurrent
from gradsmith.recurrent import AdaptiveLIFCell, LIFCell, plan, scan

from .test_user_cells import build
from .user_cells import CELLS

T, B, H = 50, 4, 16
READY = [name for name in recurrent.__all__ if name.endswith("Cell")]


def held(run: Callable[[], Any], inputs: list[Tensor]) -> int:
    """Bytes of all storages that the graph saves for backward, except those of inputs and parameters."""
    storages: dict[int, int] = {}
    alive: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        alive.append(tensor)
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    for tensor in inputs:
        storages.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storages.values())


def ratio(cell: Any, x: Tensor, state: Any) -> float:
    """Held by the engine over held by the loop. The copy of the first state, an input, is left out."""
    x = x.detach().requires_grad_()
    plan(cell, x, state)
    first = pytree.tree_leaves(state)
    inputs = [x, *cell.parameters(), *cell.buffers(), *first]
    ours = held(lambda: scan(cell, x, state), inputs)
    loop = held(lambda: scan(cell, x, state, backend="loop"), inputs)
    return max(0, ours - sum(leaf.nbytes for leaf in first)) / loop


@pytest.mark.parametrize("name", READY)
def test_ready_cells_hold_no_more_than_the_loop(name: str) -> None:
    cell = getattr(recurrent, name)(H, H)
    most = 0.75 if name in ("LayerNormLSTMCell", "LIFCell", "AdaptiveLIFCell") else 1.0
    assert ratio(cell, torch.randn(T, B, H), cell.initial_state(B)) <= most


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in CELLS if CELLS[name].backend == "c"])
def test_cells_of_users_hold_no_more_than_the_loop(name: str) -> None:
    cell, x, state = build(name, (T, B, 8, H))
    assert round(ratio(cell, x, state), 2) <= 1.01


def test_nothing_is_held_where_backward_needs_nothing() -> None:
    x, h = torch.randn(T, B, H, requires_grad=True), torch.zeros(B, H)

    def leak(x: Tensor, h: Tensor) -> Any:
        h = 0.9 * h + x
        return h, h

    plan(leak, x, h)
    assert held(lambda: scan(leak, x, h), [x, h]) == 0


@pytest.mark.parametrize("make", [LIFCell, AdaptiveLIFCell])
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_spikes_are_computed_again_from_the_potential(make: Any, steps: int) -> None:
    cell = make(3, 5)
    x = torch.randn(steps, B, 3, requires_grad=True)
    state = tuple(torch.rand(B, 5).round().requires_grad_() for _ in cell.initial_state(B))
    chosen = plan(cell, x, state)
    assert "y is not kept" in str(chosen)
    found = []
    for backend in ("c", "loop"):
        y, last = scan(cell, x, state, backend=backend)
        loss = (y * torch.linspace(-1, 1, y.numel()).view_as(y)).sum() + last[0].sin().sum()
        found.append(torch.autograd.grad(loss, [x, *state, *cell.parameters()], allow_unused=True))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_two_states_may_become_the_same_tensor() -> None:
    def step(x: Tensor, state: tuple[Tensor, Tensor]) -> Any:
        h = torch.tanh(x + 0.5 * state[0] - 0.3 * state[0] * state[1])
        return h, (h, h)

    x, state = torch.randn(T, B, H, requires_grad=True), (torch.randn(B, H), torch.randn(B, H))
    got, want = (scan(step, x, state, backend=backend)[0].sin().sum() for backend in ("c", "loop"))
    torch.testing.assert_close(torch.autograd.grad(got, x), torch.autograd.grad(want, x))

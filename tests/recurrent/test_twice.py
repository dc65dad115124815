"""Second derivatives: what the engine gives is what the loop under autograd gives, to third order, and no plan that disagrees is used."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradsmith.recurrent import GRUCell, LayerNormLSTMCell, LIFCell, LSTMCell, TanhRNNCell, scan, twice

T, B, H = 6, 3, 8


def penalty(cell: Any, x: Tensor, weight: Tensor, backend: str, orders: int = 2) -> list[Tensor]:
    y, last = scan(cell, x, cell.initial_state(B), backend=backend)
    leaves = [x, *cell.parameters()]
    loss = (y * weight).sum() + sum(leaf.square().sum() for leaf in (last if isinstance(last, tuple) else (last,)))
    for order in range(orders):
        found = torch.autograd.grad(loss, leaves, create_graph=order + 1 < orders, allow_unused=True)
        loss = sum((g.square().sum() for g in found if g is not None), torch.zeros(()))
    return [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found)]


def doubles() -> Tensor:
    return torch.randn(T, B, H, dtype=torch.float64)


def planned() -> list[bool]:
    return [plan is not None for plans in twice._tangents.values() for plan in plans.values()]


@pytest.mark.parametrize("kind", [TanhRNNCell, GRUCell, LSTMCell, LayerNormLSTMCell])
def test_a_gradient_penalty_runs_on_engines(kind: Any) -> None:
    twice._tangents.clear()
    cell, x, weight = kind(H, H).double(), doubles().requires_grad_(), doubles()
    torch.testing.assert_close(penalty(cell, x, weight, "auto"), penalty(cell, x, weight, "loop"))
    assert planned() == [True]


def test_third_derivatives() -> None:
    cell, x, weight = TanhRNNCell(H, H).double(), doubles().requires_grad_(), doubles()
    torch.testing.assert_close(penalty(cell, x, weight, "auto", 3), penalty(cell, x, weight, "loop", 3))


def test_a_surrogate_whose_second_derivative_is_autograds_own_is_replayed() -> None:
    twice._tangents.clear()
    cell, x, weight = LIFCell(H, H), torch.randn(T, B, H, requires_grad=True), torch.randn(T, B, H)
    torch.testing.assert_close(penalty(cell, x, weight, "auto"), penalty(cell, x, weight, "loop"), rtol=1e-3, atol=1e-4)
    assert planned() == [False]


def test_only_some_leaves_want_gradients() -> None:
    cell, x = GRUCell(H, H), torch.randn(T, B, H)
    for parameter in list(cell.parameters())[1:]:
        parameter.requires_grad_(False)
    first = next(cell.parameters())
    results = []
    for backend in ("auto", "loop"):
        y, _ = scan(cell, x, cell.initial_state(B), backend=backend)
        (g,) = torch.autograd.grad(y.sum(), first, create_graph=True)
        results.append(torch.autograd.grad(nn.functional.softplus(g).sum(), first)[0])
    torch.testing.assert_close(results[0], results[1], rtol=1e-3, atol=1e-4)

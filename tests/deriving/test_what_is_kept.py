"""Values of forward that are kept: what the engine hands backward for them, and softmax over segments, where nothing is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradsmith.deriving.deriving import derived
from gradsmith.deriving.trying import compared


def r(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


class GivesNone(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return None


def test_no_gradient_comes_in_and_none_goes_out() -> None:
    def costly(x: Any, y: Any) -> Any:
        return torch.sort(torch.linalg.matrix_exp(x) * y, dim=-1).values

    made = derived(costly, (r(3, 3), r(3, 3)), {}, fast=True)
    assert "set_materialize_grads(False)" in made.source
    x, y = r(3, 3), r(3, 3)
    out = GivesNone.apply(made.wrapper(x, y)).sum()
    assert torch.autograd.grad(out, (x, y), allow_unused=True) == (None, None)


def by_rows(src: Any, index: Any, segments: int) -> Any:
    weights = torch.exp(src)
    total = torch.zeros(segments, src.shape[1], dtype=src.dtype).index_add_(0, index, weights)
    return weights / (total[index] + 1e-12)


def selected(src: Any, index: Any, segments: int) -> Any:
    weights = torch.exp(src)
    total = weights.new_zeros(segments, src.shape[1]).index_add(0, index, weights)
    return weights / total.index_select(0, index)


def scattered(src: Any, index: Any, segments: int) -> Any:
    weights = torch.exp(src)
    spread = index.unsqueeze(1).expand_as(src)
    total = weights.new_zeros(segments, src.shape[1]).scatter_add(0, spread, weights)
    return weights / total.gather(0, spread)


@pytest.mark.parametrize("forward", [by_rows, selected, scattered])
def test_softmax_over_segments_needs_its_result_alone(forward: Any) -> None:
    index = torch.tensor([0, 0, 1, 3, 3, 3, 1])
    made = derived(forward, (r(7, 3), index, 4), {})
    assert {n.op for n in made.plan.saved} <= {"div", "input", "expand"}, made.source
    assert all(n in made.reading.outputs for n in made.plan.saved if n.value.is_floating_point()), made.source
    for example in (made.example, {**made.example, "src": r(7, 5).detach(), "index": torch.zeros(7, dtype=torch.long)}):
        assert compared(forward, made.wrapper, example, {"src"}) == "same"


def test_sums_of_other_segments_are_no_softmax() -> None:
    def shifted(src: Any, index: Any, other: Any) -> Any:
        weights = torch.exp(src)
        total = weights.new_zeros(4, src.shape[1]).index_add(0, index, weights)
        return weights / (total[other] + 1)

    index, other = torch.tensor([0, 0, 1, 3, 3, 3, 1]), torch.tensor([0, 1, 1, 3, 0, 3, 1])
    made = derived(shifted, (r(7, 3), index, other), {})
    assert compared(shifted, made.wrapper, made.example, {"src"}) == "same"

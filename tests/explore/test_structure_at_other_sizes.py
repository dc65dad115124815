"""What holds of the user's example is not lost on the way: a smaller tensor of positive numbers is still one of positive numbers."""

from __future__ import annotations

import torch

import gradsmith as gs
from gradsmith.lab.explore.drawing import domains_of


class CubeRoot(torch.autograd.Function):
    """The third norm of rows; backward forgets the sign, which positive numbers do not need."""

    @staticmethod
    def forward(ctx, x):
        norm = x.abs().pow(3).sum(-1).pow(1 / 3)
        ctx.save_for_backward(x, norm)
        return norm

    @staticmethod
    def backward(ctx, grad_output):
        x, norm = ctx.saved_tensors
        return (grad_output / norm.square()).unsqueeze(-1) * x.abs().square()


class Rolled(torch.autograd.Function):
    """Rolled back by the wrong number of steps, unless it is half of the row."""

    @staticmethod
    def forward(ctx, x, shift):
        ctx.shift = shift
        return torch.roll(x, shift, -1)

    @staticmethod
    def backward(ctx, grad_output):
        return torch.roll(grad_output, ctx.shift, -1), None


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_positive_inputs_are_an_assumption_at_every_size() -> None:
    report = gs.check(CubeRoot, (drawn(3, 4).abs() + 0.1).requires_grad_())
    assert report.ok, report
    assert any("negative" in sentence or "positive" in sentence for sentence in report.subjects[0].assumptions)


def test_domains_of_the_example_count_where_chance_would_not() -> None:
    few = drawn(4).abs()
    assert not domains_of(few)
    assert [d.name for d in domains_of(few, known=("positive", "not negative"))] == ["positive", "not negative"]
    assert not domains_of(-few, known=("positive",))


def test_values_of_one_option_are_one_assumption() -> None:
    report = gs.check(Rolled, drawn(3, 4).requires_grad_(), 2)
    sentences = [s for s in report.subjects[0].assumptions if "shift" in s]
    assert len(sentences) == 1 and sentences[0].startswith("`shift` is not ")

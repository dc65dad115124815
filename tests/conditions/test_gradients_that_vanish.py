"""What cancels leaves rounding and nothing else: it is another number under every condition, and no condition is to blame."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradsmith.lab import Lab, Settings, resolve
from gradsmith.lab.conditions.environment import autocast_both, autocast_forward
from gradsmith.lab.conditions.outcome import Results, difference, plain
from gradsmith.lab.subject.binding import bound


class Centred(nn.Module):
    """A bias in front of what takes the mean away, as in front of a BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return (y - y.mean(0)) ** 2


def lab() -> Lab:
    torch.manual_seed(0)
    target, arguments = bound(resolve(Centred()), (torch.randn(6, 4, requires_grad=True),), {})
    return Lab(target, arguments, Settings())


def test_a_bias_that_is_taken_away_again_is_not_wrong_under_autocast() -> None:
    assert [autocast_forward(lab()).state, autocast_both(lab()).state] == ["works", "works"]


def test_what_is_noise_in_the_plain_run_is_not_compared() -> None:
    centred = lab()
    (vanishing,) = centred.gradient.noisy
    expected = plain(centred)
    found: dict[int, Tensor | None] = dict(expected.gradients)
    found[vanishing.leaf.position] = torch.full((4,), 1e-6)
    assert difference(centred, expected, Results(expected.outputs, found)) == ""
    other = next(leaf for leaf in centred.precise[1].differentiable if leaf.position != vanishing.leaf.position)
    found[other.position] = torch.zeros_like(other.tensor)
    assert other.name in difference(centred, expected, Results(expected.outputs, found))

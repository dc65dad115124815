"""`gs.check` verifies what the engine computes, for every cell a user may write."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import gradsmith as gs

from .test_user_cells import build
from .user_cells import CELLS

SURROGATES = {"lif_with_surrogate", "recurrent_adaptive_lif", "quantised_state_function"}


class Layer(nn.Module):
    def __init__(self, cell: nn.Module, state: Any) -> None:
        super().__init__()
        self.cell, self.state = cell, state

    def forward(self, x: Tensor) -> Any:
        return gs.scan(self.cell, x, self.state)[0]


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in CELLS if name != "spikes_as_float"])  # it does not run in float64
def test_check_verifies_the_cell(name: str) -> None:
    cell, x, state = build(name, (4, 3, 5, 8))
    layer = Layer(cell.double(), pytree.tree_map(lambda leaf: leaf.double(), state))
    kind = "surrogate" if name in SURROGATES else "exact"
    report = gs.check(layer, x.to(torch.float64).requires_grad_(), gradient=kind, level="quick")
    assert report.ok, [(subject.verdict, subject.reason) for subject in report.subjects]

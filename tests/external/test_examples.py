"""The trained examples converge."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "wrap"


def _trained(name: str) -> dict[str, Any]:
    found: dict[str, Any] = runpy.run_path(str(EXAMPLES / f"{name}.py"))["train"]()
    return found


@pytest.mark.parametrize("name", ["c_function", pytest.param("scipy_ode", marks=pytest.mark.deep)])
def test_the_parameters_are_found(name: str) -> None:
    result = _trained(name)
    assert float((result["found"] - result["true"]).abs().max()) < 1e-3
    assert result["losses"][-1] < 1e-6 * result["losses"][0]


@pytest.mark.deep
def test_a_noisy_simulator_is_aimed() -> None:
    assert max(_trained("noisy_simulator")["losses"][-10:]) < 1e-4  # the noise alone makes 1e-6


def test_a_regulariser_is_learned_through_its_optimiser() -> None:
    losses = _trained("implicit_optimiser")["losses"]
    assert losses[-1] < 0.9 * losses[0] and abs(losses[-1] - losses[-5]) < 1e-2 * losses[-1]


def test_plots_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write = runpy.run_path(str(EXAMPLES / "plotting.py"))["losses_to"]
    write(str(tmp_path / "losses.png"), [1.0, 0.1], "title")
    assert (tmp_path / "losses.png").stat().st_size > 1000

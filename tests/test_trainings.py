"""The three trainings of examples/ converge, and save their plots."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def _examples_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.mark.deep
def test_the_spiking_network_learns() -> None:
    assert importlib.import_module("train_spiking").train()[-1] > 0.9


@pytest.mark.deep
def test_the_character_model_learns() -> None:
    assert importlib.import_module("train_characters").train()[-1] < 0.5


@pytest.mark.deep
def test_reversed_gradients_help_in_the_other_domain() -> None:
    train = importlib.import_module("train_adversarial").train
    alone, hidden = (sum(train(adversarial)[-5:]) / 5 for adversarial in (False, True))
    assert hidden > 0.9 and alone < 0.6


def test_a_plot_is_saved_or_its_absence_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    save_plot = importlib.import_module("plotting").save_plot
    assert save_plot(["x", str(tmp_path / "a.png")], "b.png", {"loss": [3.0, 1.0]}, "step", "loss")
    assert (tmp_path / "a.png").stat().st_size > 1000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert save_plot(["x"], "b.png", {"loss": [1.0]}, "step", "loss") is None
    assert "pip install matplotlib" in capsys.readouterr().out

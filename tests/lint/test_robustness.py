"""A small share of benchmarks/robustness.py: damaged sources are linted, fixed and rendered without a crash."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradsmith.catalog import rules

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmarks() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_sources_do_no_harm(seed: int, benchmarks: None) -> None:
    from robustness import crash, mutants

    sources = [text for rule in rules().values() for text in (rule.bad, rule.good)]
    for data in mutants(40, seed, sources):
        assert crash(data, "mutant.py") is None, data


def test_a_damaged_notebook_does_no_harm(benchmarks: None) -> None:
    import json

    from robustness import crash, mutants

    cells = [{"cell_type": "code", "source": rule.bad} for rule in rules().values()]
    text = json.dumps({"cells": cells[:3], "nbformat": 4})
    for data in mutants(60, 0, [text]):
        assert crash(data, "mutant.ipynb") is None, data


def test_a_crash_would_be_seen(benchmarks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import robustness

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(robustness.gs, "lint_source", broken, raising=False)
    assert "ZeroDivisionError" in (robustness.crash(b"x = 1", "x.py") or "")


def test_a_backward_of_a_thousand_steps_stops_nobody(benchmarks: None) -> None:
    """Rules follow a value through its assignments; one that is too long for that is skipped, with a word about it."""
    from robustness import crash

    from gradsmith.linting import lint_source

    steps = "        g = g * 2 if g is not None else other(g)\n" * 1000
    methods = "    @staticmethod\n    def forward(ctx, x):\n        return x\n\n    @staticmethod\n    def backward(ctx, g):\n"
    text = f"import torch\n\n\nclass Long(torch.autograd.Function):\n{methods}{steps}        return g\n"
    assert crash(text.encode(), "long.py") is None
    (skipped,) = lint_source(text, "long.py").skipped
    assert "too deeply" in skipped.reason

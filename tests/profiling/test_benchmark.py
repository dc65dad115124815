"""The benchmark of the profiler: its exit status must tell of every goal, and its pairs must be what they claim to be."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gradsmith.catalog import rules
from gradsmith.lab import resolve
from gradsmith.lab.process.state import preserved
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.remedies import equivalent

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAIRS = sorted((BENCHMARKS / "profile_pairs").rglob("*.py"))
OTHER_RESULTS = {"float64", "float_mask"}  # another precision; other random numbers


@pytest.fixture(scope="module")
def cases() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield _loaded(BENCHMARKS / "profile_cases.py")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(
    ("spoilt", "goal"),
    [
        ({"named": False}, "cause and line named"),
        ({"silent": False}, "fast ones without a warning"),
        ({"predicted": 5.0}, "predictions within a factor 2"),
        ({"reported": 1.2}, "medians within 10 % of an unobserved run"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_every_goal_of_the_table_can_fail(cases: ModuleType, spoilt: dict[str, float], goal: str) -> None:
    good = cases.Outcome("pair", named=True, silent=True, predicted=2.0, measured=2.0, reported=1.0, noise=1.0)
    assert all(g.met for g in cases.goals([good] * 24))
    bad = replace(good, **spoilt)
    assert [g.what for g in cases.goals([bad] * 24) if not g.met] == [goal]


def test_a_prediction_that_was_not_made_is_not_close(cases: ModuleType) -> None:
    assert not cases.Outcome("pair").close
    assert not cases.Outcome("pair").agrees


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_slow_and_fast_compute_the_same_and_causes_exist(path: Path) -> None:
    module = _loaded(path)
    assert set(module.CAUSES) <= {rule.name for rule in rules().values()}
    assert "# <-" in path.read_text()
    if path.stem in OTHER_RESULTS:
        return
    for layer in (module.slow, module.fast):
        if isinstance(layer, torch.nn.Module):
            layer.requires_grad_(False)  # their parameters come in another order; outputs and input gradients tell
    torch.manual_seed(0)
    inputs = module.inputs()
    with preserved():
        slow, fast = (Bench.of(resolve(x), inputs, {}) for x in (module.slow, module.fast))
        slow.first()
        fast.first()
        assert equivalent(slow, fast)


def _loaded(path: Path) -> ModuleType:
    name = f"benchmark_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

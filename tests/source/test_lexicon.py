"""Names have roles in one place, and benchmarks/house.py finds a list of names or of operations anywhere else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from gradsmith.source.lexicon import ROLES, gradient_names, is_a, roles, speaks_of_sides, surrogate_words

HOUSE = Path(__file__).resolve().parents[2] / "benchmarks" / "house.py"


@pytest.fixture(scope="module")
def house():
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("house_of_names", HOUSE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("attention_mask", {"mask", "integer", "zero-one label"}),
        ("chunk_indices", {"index", "integer"}),
        ("weight", {"weight", "trained"}),
        ("n_iter", {"step count", "count"}),
        ("loss_fn", {"function"}),
        ("rtol", {"tolerance"}),
        ("dim", {"dim", "the dim", "input size"}),
        ("stop_gradient", {"gradient control"}),
        ("x_real", {"real part"}),
        ("x", set()),
    ],
)
def test_a_name_has_its_roles(name, expected):
    assert expected <= roles(name)
    if not expected:
        assert not roles(name)


def test_every_role_is_a_pattern_that_compiles():
    assert not [role for role in ROLES if is_a("", role) not in (True, False)]


def test_gradients_are_named_after_what_they_belong_to():
    assert {"dx", "grad_x", "x_grad"} <= set(gradient_names("x"))


def test_words_are_found_and_not_invented():
    assert surrogate_words("class ClampSTE") == "STE"
    assert surrogate_words("round_ste") == "_ste"
    assert surrogate_words("system, grad_scale_factor of a test") in ("", "grad_scale_factor")
    assert surrogate_words("the derivative") == ""
    assert speaks_of_sides("h, w = x.shape[-2:]")
    assert not speaks_of_sides("x * x")


def test_no_list_of_operations_stands_anywhere_else(house):
    """And none of names: tests/test_house.py."""
    assert [str(place) for place in house.House().lists_of_operations()] == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('_LABEL = re.compile(r"target|label|truth|one_?hot|mask")', "names"),
        ('_TRAINED = frozenset(("weight", "bias", "gamma", "beta"))', "names"),
        ("if name in {'n_iter', 'num_steps', 'max_iter'}: pass", "names"),
        ('ok = re.search(r"(^|_)(epsilon|tolerance|max_iter)$", name)', "names"),
        ('_CLAMPS = {"clamp", "clip", "clamp_min", "clamp_max"}', "operations"),
        ('_SAVES = ("matmul", "mm", "bmm", "tanh", "exp")', "operations"),
        ('KINDS = ("one", "two", "three")', "neither"),
        ('FORMATS = ("full", "json", "sarif")', "neither"),
        ('_NEWER = re.compile(r"^\\s*(type\\s+|class\\s+|match\\b)")', "neither"),
    ],
)
def test_the_counter_sees_a_list_that_somebody_adds(house, tmp_path, line, kind):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "new_rule.py").write_text(f"import re\n{line}\n", encoding="utf-8")
    counted = house.House(tmp_path)
    assert [bool(counted.lists_of_names()), bool(counted.lists_of_operations())] == [
        kind == "names",
        kind == "operations",
    ]

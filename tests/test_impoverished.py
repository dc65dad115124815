"""benchmarks/impoverished.py: mutants at inputs that hide them, found by gradcheck alone, and the same ones each time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from hidden_mutants import Poor, Search, passes
from impoverished import judged, undeclared
from mutants import Mutant, breed
from poverties import applied, of_structure, of_values

MUTANTS = list(breed(3))


def hidden(part: str) -> tuple[Search, list[Poor]]:
    search = Search()
    return search, list(search.subjects([m for m in MUTANTS if part in m.name], per_mutant=2))


@pytest.mark.parametrize("part", ["swish.Swish:dropped term", "linear.Linear:unreduced"])
def test_gradcheck_passes_at_the_poor_inputs_for_mutant_and_original(part: str) -> None:
    _, subjects = hidden(part)
    assert subjects
    for poor in subjects:
        assert passes(poor.mutant.source, poor.mutant.cls, poor.args)
        assert passes(poor.mutant.original, poor.mutant.cls, poor.args)


def test_the_same_subjects_each_time() -> None:
    first, second = ([(p.name, [str(a) for a in p.args]) for p in hidden("swish.Swish:constant")[1]] for _ in range(2))
    assert first == second


def test_what_gradcheck_does_not_see_at_the_declared_inputs_is_no_subject() -> None:
    search, subjects = hidden("swish.Swish:lower precision")
    assert not subjects
    assert search.invisible == search.mutants > 0


def test_the_rich_inputs_are_taken_out_of_the_source_and_nothing_else() -> None:
    source = "import torch\nx = 1\ngradsmith_inputs = {'F': lambda: (torch.randn(3),)}\ny = 2"
    assert undeclared(source) == "import torch\nx = 1\ny = 2"


def test_poverties_keep_what_asks_for_a_gradient_and_leave_the_arguments_alone() -> None:
    def forward(ctx, x, mask, index, bias: torch.Tensor | None, mean: bool):
        raise AssertionError("never called")

    x, bias = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((4, 3), (3,)))
    args = (x, torch.tensor([True, False, True]), torch.tensor([2, 0, 2]), bias, True)
    kept = [str(a) for a in args]
    made = {str(p): applied([p], args) for p in [*of_values(args), *of_structure(args, forward, takes_ctx=True)]}
    assert [str(a) for a in args] == kept
    assert {name for name, poorer in made.items() if poorer is None} == {
        *(
            f"{kind}{where}"
            for kind in ("real", "symmetric", "identity")
            for where in ("", " in argument 0", " in argument 3")
        ),
        "equal rows in argument 3",
        "neutral options",
    }
    assert made["ones"][0].requires_grad and made["ones"][0].eq(1).all()
    assert made["square"][0].shape == (3, 3) and made["batch 1 for size 3"][3].shape == (1,)
    assert made["all-True masks"][1].all() and made["sorted unique ids"][2].tolist() == [0, 1, 2]
    assert made["default options"][3:] == (None, False)
    assert not made["one gradient asked for of argument 0"][3].requires_grad


@pytest.mark.deep
def test_a_mutant_is_judged_beside_its_original_at_the_same_inputs() -> None:
    mutant: Mutant = next(m for m in MUTANTS if "squares_and_product" in m.name and m.operator == "sign")
    (found,) = judged(list(Search().subjects([mutant], per_mutant=1)), "standard", 1)
    assert found.original.verdict == "verified"
    assert not found.original.errors
    assert found.kind in ("error", "assumption", "silent", "unverified")

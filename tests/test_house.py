"""The plan of the house, kept: what may import what, and where each thing is decided, read and listed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import house as counting
from house import OWN_LISTS, House


@pytest.fixture(scope="module")
def house() -> House:
    return House()


def test_no_packages_import_each_other_not_even_inside_functions(house: House) -> None:
    assert house.cycles() == []


def test_the_graph_is_not_empty(house: House) -> None:
    """A drawing that sees no imports would find no cycle either."""
    graph = house.graph()
    assert {"catalog", "findings", "lab", "inputs"} <= set(graph["checking"])
    assert len(house.rules) > 100


def test_no_rule_is_named_outside_its_file(house: House) -> None:
    assert [str(place) for place in house.rule_names()] == []


def test_one_file_decides_verdicts_and_severities(house: House) -> None:
    assert {place.path for place in house.verdicts()} == {"checking/verdict.py"}
    assert {place.path for place in house.severities()} == {"checking/verdict.py"}


def test_source_and_lab_know_nothing_of_rules_and_inputs_nothing_of_verdicts(house: House) -> None:
    graph = house.graph()
    assert not {"rules", "catalog", "checking", "report"} & {*graph["source"], *graph["lab"]}
    assert not {"rules", "catalog", "checking", "report"} & set(graph["inputs"])
    assert "report" not in graph["rules"]


def test_one_reader_of_user_source_one_tape_one_lexicon(house: House) -> None:
    assert {place.path for place in house.readers()} == set()
    assert [place.what for place in house.modes()] == ["OperationTape"]
    assert [str(place) for place in house.lists_of_names()] == []


def test_what_torch_does_is_known_once(house: House) -> None:
    assert [str(place) for place in house.lists_of_operations()] == []
    assert [str(place) for place in house.known_twice()] == []


def test_every_file_with_a_list_of_its_own_has_one(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "OWN_LISTS", {})
    assert {place.path for place in house.lists_of_operations()} == set(OWN_LISTS)


def test_a_name_of_a_class_means_one_thing(house: House) -> None:
    """Those that are left stand in rooms that never meet; a new one is not to join them."""
    left = [
        "Call",
        "Kept",
        "Kernel",
        "Leaf",
        "Loop",
        "Operation",
        "Place",
        "Plan",
        "Refused",
        "Run",
        "Statement",
        "Unread",
        "Wanted",
        "Wrapped",
    ]
    assert {place.what for place in house.names_twice()} <= set(left)


def test_rules_follow_names_back_by_one_walk(house: House) -> None:
    """A rule that must know more than which expressions a value is made of is listed here, with what it asks."""
    allowed = {"rules/contract/needs_input_grad_index.py"}  # where the values stand that are not None
    assert {place.path for place in house.own_walks()} <= allowed

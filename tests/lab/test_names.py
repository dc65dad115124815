"""What a run that is not a real one leaves under the names of classes, modules and globals: nothing."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest
import torch

from gradsmith.lab.process.names import kept_names, owners_of

COUNTS: dict[str, int] = {"runs": 1}


class Keeper:
    last: Any = None
    calls: list[int] = []


def run() -> None:
    global ADDED
    ADDED = 3
    COUNTS["runs"] += 1
    COUNTS["more"] = 1
    Keeper.last = "something"
    Keeper.new = 1  # type: ignore[attr-defined]
    Keeper.calls.append(5)


@pytest.mark.parametrize("root", [Keeper, run], ids=["a class", "a function"])
def test_names_and_containers_are_put_back(root: Any) -> None:
    Keeper.last = None
    calls = Keeper.calls
    with kept_names([*owners_of(root), Keeper]):
        run()
        assert COUNTS["runs"] == 2 and Keeper.calls == [5]
    assert COUNTS == {"runs": 1} and "ADDED" not in globals()
    assert Keeper.last is None and not hasattr(Keeper, "new")
    assert Keeper.calls is calls and calls == []


def test_they_are_put_back_when_the_run_raises() -> None:
    def failing() -> None:
        with kept_names([*owners_of(run), Keeper]):
            run()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert COUNTS == {"runs": 1} and not hasattr(Keeper, "new")


def test_buffers_of_a_module_are_put_back() -> None:
    layer = torch.nn.BatchNorm1d(3)
    before = layer.running_mean
    with kept_names([layer]):
        layer.running_mean = torch.ones(3)
    assert layer.running_mean is before


def test_what_belongs_to_torch_is_left_alone() -> None:
    found = owners_of(torch.nn.Linear(2, 2), Keeper)
    assert Keeper in found and sys.modules[__name__] in found
    assert not any(getattr(owner, "__name__", "").startswith("torch") for owner in found)


def test_pythons_own_names_stay_usable() -> None:
    """Every file holds them under `__builtins__`; once they were emptied to be put back, and nothing could run any more."""
    try:
        with kept_names(owners_of(run)):
            builtins.left_by_a_run = 1  # type: ignore[attr-defined]
        assert len([1]) == 1
    finally:
        del builtins.left_by_a_run  # type: ignore[attr-defined]

"""Every example in a docstring of the recurrent package runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import torch

import gradsmith.recurrent

MODULES = [module.name for module in pkgutil.iter_modules(gradsmith.recurrent.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"gradsmith.recurrent.{name}")
    results = doctest.testmod(
        module, extraglobs={"torch": torch}, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert results.failed == 0


@pytest.mark.parametrize("name", gradsmith.recurrent.__all__)
def test_public_names_have_an_example(name: str) -> None:
    thing = getattr(gradsmith.recurrent, name)
    if isinstance(thing, type) and thing.__name__ == "Plan":
        return
    assert ">>>" in (thing.__doc__ or ""), name

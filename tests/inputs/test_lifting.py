"""Classes inside functions are checked without calling the function they stand in."""

from __future__ import annotations

import functions_inside as ops
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.lifting import NotLiftable, assumed, lookup


def test_only_what_the_class_uses_is_run():
    wave = lookup(ops, "plain.<locals>.Wave")
    assert wave.__qualname__ == "plain.<locals>.Wave"
    report = gs.check(wave, level="quick")
    assert report.subjects[0].verdict == "verified"
    assert wave.calls > 0  # backward names its own class


def test_a_wrong_gradient_two_functions_deep_is_refuted():
    report = gs.check(lookup(ops, "outer.<locals>.inner.<locals>.Deep"), level="quick")
    assert report.subjects[0].verdict == "refuted"


def test_a_parameter_is_what_callers_pass():
    scale = lookup(ops, "quantiser.<locals>.Scale")
    found = assumed(scale)
    assert (dict(found.values), found.guessed) == ({"levels": 8}, ())
    report = gs.check(scale, level="quick")
    assert report.subjects[0].verdict == "verified"
    assert "Scale: taken out of quantiser(levels=8), which was not called" in report.notes


def test_with_a_guessed_parameter_a_wrong_gradient_is_a_warning():
    off = lookup(ops, "wrong_for.<locals>.Off")
    assert assumed(off).guessed == ("alpha",)
    report = gs.check(off, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert "'alpha' of wrong_for had to be guessed" in report.subjects[0].reason
    assert {f.severity for f in report.findings if f.rule == "wrong-gradient"} == {"warning"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("of_a_caller.<locals>.Held", "it uses 'network' of of_a_caller, which only a caller can give"),
        ("counted.<locals>.Computed", "it uses 'total', which counted computes in line"),
        ("plain.<locals>.Nothing", "plain defines no Nothing"),
    ],
)
def test_what_needs_a_caller_says_so(name, why):
    with pytest.raises(NotLiftable, match=why):
        lookup(ops, name)


def test_a_methods_own_parameters_are_not_those_of_the_function():
    kept = lookup(ops, "from_values.<locals>.Kept")
    assert dict(assumed(kept).values) == {}
    assert gs.check(kept, level="quick").subjects[0].verdict == "verified"


def test_functions_that_a_caller_passes_come_from_one_call():
    composed = lookup(ops, "made_of.<locals>.Composed")
    found = assumed(composed)
    assert (found.values["inner"], found.values["slope"], found.values["extra"]) == (torch.sin, torch.cos, ())
    report = gs.check(composed, level="quick")
    assert report.subjects[0].verdict == "verified"
    assert "Composed: taken out of made_of(inner=sin, slope=cos), which was not called" in report.notes

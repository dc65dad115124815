"""What backward reads again, and others may change between forward and backward."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from gradsmith.checking.options import Options
from gradsmith.checking.run import examine_supplied
from gradsmith.findings import Report
from gradsmith.lab import resolve

FILE = """
import torch

SLOPE = 0.5


class Sub(torch.autograd.Function):
    scale = 2.0

    @staticmethod
    def forward(ctx, x, options):
        ctx.options, ctx.value = options, {value}
        ctx.save_for_backward(x)
        return x.sin() * {value}

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0].cos() * {read}, None


{writer}
gradsmith_inputs = {{"Sub": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), {{"gain": 3.0}})}}
"""
SET_SCALE = "def set_scale(value):\n    Sub.scale = value\n"
STEP = """
def step(cls):
    cls.scale = cls.scale + 1


Sub.step = classmethod(step)


"""
SET_SLOPE = "def set_slope(value):\n    global SLOPE\n    SLOPE = value\n"


def checked(load: Callable[[str], ModuleType], value: str, read: str, writer: str = "") -> Report:
    module = load(FILE.format(value=value, read=read, writer=writer))
    return examine_supplied(resolve(module.Sub), Options(select=("class-state",), lint=False, debug=True), module)


@pytest.mark.parametrize(
    ("value", "read", "writer", "name", "who"),
    [
        ("Sub.scale", "Sub.scale", SET_SCALE, "`Sub.scale`", "set_scale writes it"),
        ("Sub.scale", "Sub.scale", STEP, "`Sub.scale`", "Sub.step writes it"),
        ("SLOPE", "SLOPE", SET_SLOPE, "`SLOPE`", "set_slope writes it"),
        ("options['gain']", "ctx.options['gain']", "", "`options['gain']`", "The caller may change it"),
    ],
)
def test_what_others_may_change_before_backward_is_a_warning(
    value: str, read: str, writer: str, name: str, who: str, load: Callable[[str], ModuleType]
) -> None:
    report = checked(load, value, read, writer)
    (found,) = report.findings
    assert (found.rule, found.severity) == ("class-state", "warning")
    assert name in found.message and who in found.message
    assert report.subjects[0].verdict == "verified"


@pytest.mark.parametrize(
    ("value", "read", "writer"),
    [
        ("Sub.scale", "Sub.scale", ""),  # a constant: nothing writes it
        ("SLOPE", "SLOPE", SET_SCALE),
        ("Sub.scale", "ctx.value", SET_SCALE),  # forward kept it
        ("options['gain']", "ctx.value", ""),
    ],
)
def test_a_constant_or_a_kept_value_is_fine(
    value: str, read: str, writer: str, load: Callable[[str], ModuleType]
) -> None:
    assert not checked(load, value, read, writer).findings


def test_everything_is_put_back(load: Callable[[str], ModuleType]) -> None:
    report = checked(load, "SLOPE", "SLOPE", SET_SLOPE)
    home = report.findings[0].path
    module = next(m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == home)
    assert module.SLOPE == 0.5 and module.Sub.scale == 2.0

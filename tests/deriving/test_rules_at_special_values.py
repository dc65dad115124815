"""The rules of the table at zeros, ties, ones and negative numbers: autograd's numbers wherever those are finite."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from gradsmith.deriving.deriving import _once
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.table import INFIX, Operation, operations
from gradsmith.deriving.trying import compared


def _forward(operation: Operation) -> Any:
    """`def forward(t0, t1): return torch.atan2(t0, t1)`; None where more than tensors and a dimension is needed."""
    needed = [p for p in operation.params if p not in operation.defaults]
    if list(operation.params[: len(needed)]) != needed or len(needed) > 2:
        return None
    given = ["-1" if param == "dim" else f"t{i}" for i, param in enumerate(needed)]
    if operation.style == "infix":
        call = f"t0 {INFIX[operation.name][0]} t1"
    elif operation.style == "method":
        call = f"t0.{operation.name}({', '.join(given[1:])})"
    elif operation.style in ("torch", "torch.nn.functional", "F", "torch.special"):
        call = f"{operation.style}.{operation.name}({', '.join(given)})"
    else:
        return None
    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(f"def forward({', '.join(g for g in given if g != '-1')}):\n    return {call}", scope)
    return scope["forward"]


def _special(base: Tensor) -> Iterator[Tensor]:
    yield base
    yield torch.zeros_like(base)
    yield -base
    for value in (0.0, 1.0, -0.7):
        one = base.clone()
        one[0, 1] = value
        yield one
    tied = base.clone()
    tied[0] = tied[0, 0]
    yield tied


@pytest.mark.parametrize("name", sorted(n for n, o in operations().items() if not o.zero and o.kind in "esr"))
def test_the_rule_is_autograds_at_zeros_ties_and_negative_numbers(name: str) -> None:
    forward = _forward(operations()[name])
    if forward is None:
        pytest.skip("needs more than tensors")
    draw = torch.Generator().manual_seed(0)
    names = forward.__code__.co_varnames[: forward.__code__.co_argcount]
    bases = {n: torch.rand(2, 4, dtype=torch.float64, generator=draw) * 0.5 + 0.2 for n in names}
    leaves = tuple(b.clone().requires_grad_() for b in bases.values())
    try:
        forward(*leaves).sum().backward()
    except Exception as error:
        pytest.skip(f"not on plain matrices: {error}")
    try:
        made = _once(forward, leaves, {}, trusting=True, level=0, fast=False)
    except Refused as refusal:
        if "could not be computed" in str(refusal):  # the rule itself raises
            raise
        pytest.skip(str(refusal))
    for values in itertools.product(*(tuple(_special(b)) for b in bases.values())):
        example = dict(zip(names, values))
        outcome = compared(forward, made.wrapper, example, set(made.wanted))
        assert outcome in ("same", "not judged", "refuses"), f"{outcome} at {example}\n{made.source}"


_BETWEEN = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0], dtype=torch.float64)


def _written(expression: str, *names: str) -> Any:
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def forward({', '.join(names)}):\n    return {expression}", scope)
    return scope["forward"]


@pytest.mark.parametrize("bounds", ["min=0.0", "max=1.0", "0.0, 1.0", "1.0, 1.0"])
def test_a_clamp_to_numbers_hands_back_at_its_bounds_what_autograd_does(bounds: str) -> None:
    forward = _written(f"torch.clamp(t, {bounds})", "t")
    made = _once(forward, (_BETWEEN.clone().requires_grad_(),), {}, trusting=True, level=0, fast=False)
    assert compared(forward, made.wrapper, {"t": _BETWEEN}, set(made.wanted)) == "same", made.source


@pytest.mark.parametrize("bounds", ["min=low) + high", "max=high) + low", "low, high)"])
def test_a_clamp_to_tensors_hands_back_at_its_bounds_what_autograd_does(bounds: str) -> None:
    """Every order of the three, with everything that can be equal."""
    names = ("t", "low", "high")
    forward = _written(f"torch.clamp(t, {bounds}", *names)
    given = [g.clone() for g in torch.cartesian_prod(_BETWEEN, _BETWEEN, _BETWEEN).unbind(1)]
    leaves = tuple(g.clone().requires_grad_() for g in given)
    made = _once(forward, leaves, {}, trusting=True, level=0, fast=False)
    assert compared(forward, made.wrapper, dict(zip(names, given)), set(made.wanted)) == "same", made.source

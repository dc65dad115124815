"""What the methods of a Function use besides their arguments and ctx, by kind, with the line."""

from __future__ import annotations

import pytest
from source_texts import function

from gradsmith.source.outside import outside

HEAD = """
import os
import random as rnd
import threading

import numpy as np
import torch
import torch.distributed as dist

RNG = np.random.default_rng(0)
COUNTS = {}
CALLS = 0
KEPT = threading.local()
SCALE = 2.0


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
"""
TAIL = """
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
"""
FIRST = HEAD.count("\n") + 1  # the line of the first statement of forward


@pytest.mark.parametrize(
    ("statement", "kind", "shown"),
    [
        ("x = x * rnd.random()", "draw", "rnd.random"),
        ("x = x * np.random.rand()", "draw", "np.random.rand"),
        ("x = x * RNG.random()", "draw", "RNG.random"),
        ("COUNTS[x.data_ptr()] = 1", "address", "x.data_ptr()"),
        ("ctx.key = id(x)", "address", "id(x)"),
        ('x = x / int(os.environ.get("WORLD_SIZE", 1))', "process", "os.environ.get"),
        ("x = x / dist.get_world_size()", "process", "dist.get_world_size"),
        ("x = x if torch.compiler.is_compiling() else 2 * x", "compiler", "torch.compiler.is_compiling"),
        ("KEPT.factor = 2", "thread", "KEPT.factor"),
        ("COUNTS[1] = 1", "state", "COUNTS"),
        ("COUNTS.update(a=1)", "state", "COUNTS.update"),
        ("global CALLS; CALLS += 1", "state", "CALLS"),
        ("Fn.calls = 1", "state", "Fn.calls"),
    ],
)
def test_a_use_has_its_kind_its_text_and_its_line(statement: str, kind: str, shown: str) -> None:
    found = outside(function(f"{HEAD}        {statement}{TAIL}"), kind)  # type: ignore[arg-type]
    assert [(use.kind, use.shown, use.line, use.method.name) for use in found[:1]] == [(kind, shown, FIRST, "forward")]


@pytest.mark.parametrize(
    "statement",
    [
        "x = x * torch.rand_like(x)",  # torch's own generator is kept by checkpoint
        "x = x * SCALE",  # nothing here writes it
        "x = x * len(COUNTS)",
        "random = x.random_(); x = random.clone()",
        "ctx.calls = 1",
        "found = {}; found[1] = x",
    ],
)
def test_what_belongs_to_the_call_is_not_outside(statement: str) -> None:
    model = function(f"{HEAD}        {statement}{TAIL}")
    assert outside(model, "draw", "address", "process", "compiler", "thread", "state") == []


def test_the_kinds_come_in_the_order_in_which_they_are_asked_for() -> None:
    model = function(f"{HEAD}        COUNTS[1] = 1; x = x * rnd.random(){TAIL}")
    assert [use.kind for use in outside(model, "draw", "state")] == ["draw", "state"]
    assert [use.kind for use in outside(model, "state", "draw")] == ["state", "draw"]
    assert outside(model, "draw", methods=("backward",)) == []

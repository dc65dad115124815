"""What the source of a kernel shows by itself, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith import lint_source

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
{body}


def launch(x, y, n, BLOCK):
    kernel[{grid}](x, y, n, BLOCK=BLOCK)
"""
CDIV = "(triton.cdiv(n, BLOCK),)"


def seen(body: str, grid: str = CDIV) -> list[tuple[str, int]]:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return [
        (f.rule, f.line) for f in lint_source(KERNEL.format(body=lines, grid=grid)).findings if f.code.startswith("GSK")
    ]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("x = tl.load(x_ptr + i, mask=mask)\ntl.store(y_ptr + row, tl.sum(x, 0))", "undefined-lane"),
        ("x = tl.load(x_ptr + i, mask)\nz = x * x\ntl.store(y_ptr + row, tl.max(z, 0))", "undefined-lane"),
        ("x = tl.load(x_ptr + i, mask=mask, other=0.0)\ntl.store(y_ptr + i, x)", "out-of-bounds-store"),
        ("tl.store(y_ptr + i, tl.load(y_ptr + i, mask=mask, other=0.0) + row, mask=mask)", "race"),
    ],
)
def test_a_mistake_is_seen(body: str, rule: str) -> None:
    assert rule in [name for name, _ in seen(body)]


@pytest.mark.parametrize(
    "body",
    [
        "x = tl.load(x_ptr + i, mask=mask, other=0.0)\ntl.store(y_ptr + row, tl.sum(x, 0))",
        "x = tl.load(x_ptr + i, mask=mask)\nx = tl.where(mask, x, 0.0)\ntl.store(y_ptr + row, tl.sum(tl.where(mask, x, 0.0), 0))",
        "x = tl.load(x_ptr + i, mask=mask)\ntl.store(y_ptr + i, x * 2, mask=mask)",
        "p = y_ptr + row * n + i\ntl.store(p, tl.load(p, mask=mask, other=0.0) + 1, mask=mask)",
        "tl.atomic_add(y_ptr + i, tl.load(x_ptr + i, mask=mask, other=0.0), mask=mask)",
        "while tl.atomic_cas(x_ptr, 0, 1) == 1:\n    pass\ntl.store(y_ptr, tl.load(y_ptr) + row)\ntl.atomic_xchg(x_ptr, 0)",
    ],
)
def test_a_right_kernel_is_left_alone(body: str) -> None:
    assert seen(body) == []


@pytest.mark.parametrize("grid", [CDIV, "((n + BLOCK - 1) // BLOCK,)", "(-(-n // BLOCK),)", "(n // 4,)", "(n,)"])
def test_a_grid_that_covers_everything_is_left_alone(grid: str) -> None:
    assert seen("tl.store(y_ptr + i, 1.0, mask=mask)", grid) == []


@pytest.mark.parametrize("grid", ["(n // BLOCK,)", "(1, n // BLOCK)", 'lambda meta: (n // meta["BLOCK"],)'])
def test_a_grid_that_is_rounded_down_is_seen(grid: str) -> None:
    assert [name for name, _ in seen("tl.store(y_ptr + i, 1.0, mask=mask)", grid)] == ["grid-misses-tail"]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["x * 2", "tl.exp(x)", "x + row", "(x - 1)"]), min_size=1, max_size=4))
def test_undefined_lanes_are_followed_through_any_arithmetic(steps: list[str]) -> None:
    body = [
        "x = tl.load(x_ptr + i, mask=mask)",
        *(f"x = {step}" for step in steps),
        "tl.store(y_ptr + row, tl.sum(x, 0))",
    ]
    assert [name for name, _ in seen("\n".join(body))] == ["undefined-lane"]

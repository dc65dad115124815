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
SUMS = (
    "before = 0\nfor s in range(0, n, BLOCK):\n    o = s + i\n    x = tl.load(x_ptr + o, mask=o < n)\n"
    "    tl.store(y_ptr + o, {}, mask=o < n)\n    before += tl.sum(x, 0)\n{}"
)
RESHAPED = (
    "x = tl.load(x_ptr + i, mask=mask)\ny = x[:, None] * tl.load(y_ptr + tl.arange(0, 16))[None, :]\n"
    "tl.store(y_ptr + row, tl.sum(tl.reshape(y, [{}]), axis={}))"
)

# The size by way of a name, and columns of a product that were rows when they were loaded.
TURNED = (
    "size = n\nb = tl.load(x_ptr + i[:, None] * n + tl.arange(0, 16)[None, :], mask=i{} < size)\n"
    "a = tl.load(y_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])\n"
    "tl.store(y_ptr + i[None, :], tl.dot(a, b.T), mask=i[None, :] < size)"
)

FLAGGED = (
    "EVEN: tl.constexpr = n == BLOCK\no = row * n + i\nif EVEN:\n    x = tl.load(x_ptr + o)\nelse:\n"
    "    x = tl.load(x_ptr + o, mask=mask, other=0.0)\nif {}:\n    tl.store(y_ptr + o, x)\n{}:\n    tl.store(y_ptr + o, x, mask=mask)"
)

OPTIONS = (
    'size = n // options["PARTS"]\na = tl.load(x_ptr + i[:, None] * n + i[None, :], mask=i{} < size)\n'
    "tl.store(y_ptr + i[:, None], tl.dot(a, tl.load(x_ptr + i[:, None] * 16 + i[None, :])), mask=i[:, None] < size)"
)
# What was not loaded is the same on both sides of a difference, or is not.
CANCELLED = (
    "x = tl.load(x_ptr + i, mask=i < n)\ny = tl.load(y_ptr + i, mask=i < n)\nlater = {} // 4\n"
    "before = tl.where(i < n, x - 1, {}) // 4\ntl.store(y_ptr + row, tl.sum(later - before))"
)


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
        (
            "o = row * n + i\nx = tl.load(x_ptr + o, mask=mask, other=0.0)\ntl.store(y_ptr + o, x)",
            "out-of-bounds-store",
        ),
        (
            "x = tl.load(x_ptr + i, mask=mask)\ntl.store(y_ptr + i, tl.cumsum(x, 0, reverse=True), mask=mask)",
            "undefined-lane",
        ),
        # What is read after the loop, or by other programs' lanes, is not for the next step only.
        (SUMS.format("x", "tl.store(y_ptr + row, before)"), "undefined-lane"),
        (RESHAPED.format("BLOCK * 4, 4", 1), "undefined-lane"),
        (RESHAPED.format("BLOCK, 4, 4", 0), "undefined-lane"),
        (TURNED.format("[None, :]"), "undefined-lane"),
        (FLAGGED.format("row > 0", "else"), "out-of-bounds-store"),
        ("tl.store(y_ptr + i, tl.load(y_ptr + i, mask=mask, other=0.0) + row, mask=mask)", "race"),
        (
            "x = tl.load(y_ptr + i, mask=mask, other=0.0)\nx = tl.where(x > row, x * 2, 0.0)\ntl.store(y_ptr + i, x, mask=mask)",
            "race",
        ),
        (
            "x = tl.load(x_ptr + i, mask=mask & (row > 0))\ntl.store(y_ptr + row, tl.sum((mask & (x > 0)).to(tl.int32), 0))",
            "undefined-lane",
        ),
        (CANCELLED.format("x", "y"), "undefined-lane"),
        (CANCELLED.format("2 * x", "x"), "undefined-lane"),
        # Another row of a block of numbers than the one that is masked.
        (OPTIONS.format("[None, :]"), "undefined-lane"),
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
        # Only one program stores; the last one to arrive at a counter; memory of the program's own.
        "if row == 0:\n    tl.store(y_ptr + i, tl.load(y_ptr + i, mask=mask, other=0.0) * 2, mask=mask)",
        "if row > 0:\n    return\ntl.store(y_ptr + i, tl.load(y_ptr + i, mask=mask, other=0.0) * 2, mask=mask)",
        "c = tl.atomic_add(x_ptr, 1)\nif c == n - 1:\n    tl.store(y_ptr, tl.load(y_ptr) * 2 + row)",
        "p = gpu.local_ptr(gpu.alloc(i), i)\ntl.store(p, tl.load(p, mask=mask, other=0) + row, mask=mask)",
        # A block of scratch has room for all of itself; whole tiles need no mask, only the tail does.
        "x = tl.load(x_ptr + i, mask=mask, other=0)\ntl.store(y_ptr + i, tl.cumsum(x, 0))",
        (
            "o = row * n + i\nx = tl.load(x_ptr + o, mask=o < n, other=0.0)\ntl.store(y_ptr + o, x, mask=o < n)\n"
            "for s in range(BLOCK, n, BLOCK):\n    o = row * n + i + s\n    tl.store(y_ptr + o, tl.load(x_ptr + o))"
        ),
        # A scan comes to the lanes that were not loaded last; what is skipped needs no tl.where.
        "x = tl.load(x_ptr + i, mask=mask)\ntl.store(y_ptr + i, tl.cumsum(x, 0), mask=mask)",
        "x = tl.load(x_ptr + i, mask=mask)\nif n < BLOCK:\n    x = tl.where(mask, x, 0.0)\ntl.store(y_ptr + row, tl.sum(x, 0))",
        # The last block has no next step to spoil; rows that were not loaded stay rows.
        SUMS.format("before", ""),
        RESHAPED.format("BLOCK, 4, 4", 1),
        TURNED.format("[:, None]"),
        # A flag says that nothing is left out, here and where the load is.
        FLAGGED.format("EVEN", "else"),
        # A mask of as many lanes as there are leaves none out.
        "o = row * BLOCK + i\nx = tl.load(x_ptr + o, mask=i < BLOCK, other=0.0)\ntl.store(y_ptr + o, x)",
        "x = tl.load(x_ptr + row * BLOCK + i, mask=i < BLOCK)\ntl.store(y_ptr + row, tl.sum(x, 0))",
        # What is false in the lanes that were not loaded, whatever stands there.
        "x = tl.load(x_ptr + i, mask=mask & (row > 0))\ntl.store(y_ptr + row, tl.sum(((i < n) & (row > 0) & (x > 0)).to(tl.int32), 0))",
        # Loaded numbers that only choose what is stored add up with nothing.
        "x = tl.load(y_ptr + i, mask=mask, other=0.0)\nx = tl.where(i == tl.argmax(x, 0), 1.0, 0.0)\ntl.store(y_ptr + i, x, mask=mask)",
        CANCELLED.format("x", "x"),
        # One of several options is a number.
        OPTIONS.format("[:, None]"),
        # A mask that is None leaves nothing out.
        "x = tl.load(x_ptr + i, None)\ntl.store(y_ptr + row, tl.sum(x, 0), mask=None)",
        "while tl.atomic_cas(x_ptr, 0, 1) == 1:\n    pass\ntl.store(y_ptr, tl.load(y_ptr) + row)\ntl.atomic_xchg(x_ptr, 0)",
    ],
)
def test_a_right_kernel_is_left_alone(body: str) -> None:
    assert seen(body) == []


BLOCKS = "o = tl.program_id({axis}) * BLOCK + i\ntl.store(y_ptr + o, 1.0, mask=o < n)"


@pytest.mark.parametrize(
    "grid",
    [
        CDIV,
        "((n + BLOCK - 1) // BLOCK,)",
        "(-(-n // BLOCK),)",
        "(n // BLOCK + 1,)",
        "(triton.cdiv(n, BLOCK) * BLOCK // BLOCK,)",
        "(triton.cdiv(n // BLOCK, 4),)",
        "(n // 4,)",
        "(n,)",
    ],
)
def test_a_grid_that_covers_everything_is_left_alone(grid: str) -> None:
    assert seen(BLOCKS.format(axis=0), grid) == []


@pytest.mark.parametrize(
    ("grid", "axis"), [("(n // BLOCK,)", 0), ("(1, n // BLOCK)", 1), ('lambda meta: (n // meta["BLOCK"],)', 0)]
)
def test_a_grid_that_is_rounded_down_is_seen(grid: str, axis: int) -> None:
    assert [name for name, _ in seen(BLOCKS.format(axis=axis), grid)] == ["grid-misses-tail"]


def test_a_rounded_down_grid_is_meant_where_the_kernel_masks_something_else() -> None:
    """Tiles of a head that the block divides: nobody masks them."""
    body = "o = tl.program_id(0) * BLOCK + i\ntl.store(y_ptr + o, 1.0)"
    assert seen(body, "(n // BLOCK,)") == []


def test_undefined_lanes_of_one_kernel_are_told_once() -> None:
    body = (
        "x = tl.load(x_ptr + i, mask=mask)\ny = tl.load(y_ptr + i, mask=mask)\ntl.store(y_ptr + row, tl.sum(x * y, 0))"
    )
    assert [name for name, _ in seen(body)] == ["undefined-lane"]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["x * 2", "tl.exp(x)", "x + row", "(x - 1)"]), min_size=1, max_size=4))
def test_undefined_lanes_are_followed_through_any_arithmetic(steps: list[str]) -> None:
    body = [
        "x = tl.load(x_ptr + i, mask=mask)",
        *(f"x = {step}" for step in steps),
        "tl.store(y_ptr + row, tl.sum(x, 0))",
    ]
    assert [name for name, _ in seen("\n".join(body))] == ["undefined-lane"]

"""A wrong number that a kernel stored points into that kernel, and the search for a repair looks at its expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.findings import Finding
from gradsmith.rules.kernels import SQUARE

pytest.importorskip("triton")
# x ** 2 + exp(x), with the slope in a line of its own.
RIGHT = SQUARE.replace("tl.store(y_ptr + i, x * x,", "tl.store(y_ptr + i, x * x + tl.exp(x),").replace(
    "    tl.store(d_ptr + i, 2 * x * g,", "    slope = 2 * x + tl.exp(x)\n    tl.store(d_ptr + i, slope * g,"
)
SIGN = RIGHT.replace("2 * x + tl.exp(x)", "2 * x - tl.exp(x)")
ANOTHER = RIGHT.replace("2 * x + tl.exp(x)", "tl.cos(3.1 * x) + 0.7 / (1.3 + x * x)")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finding]:
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "sign.py").write_text(SIGN, encoding="utf-8")
    (folder / "another.py").write_text(ANOTHER, encoding="utf-8")
    found = gs.check_paths(folder, level="quick").findings
    return {Path(str(f.path)).stem: f for f in found if f.rule == "wrong-gradient"}


def test_a_mistake_in_a_kernels_expression_is_repaired_there(wrong: dict[str, Finding]) -> None:
    found = wrong["sign"]
    assert found.cause == "wrong-operator"
    assert SIGN.splitlines()[found.line - 1 if found.line else 0].strip() == "slope = 2 * x - tl.exp(x)"
    assert "Write `2 * x + tl.exp(x)` instead of `2 * x - tl.exp(x)`" in str(found.advice)


def test_a_wrong_number_without_a_repair_points_at_the_store_that_filled_it(wrong: dict[str, Finding]) -> None:
    found = wrong["another"]
    assert ANOTHER.splitlines()[found.line - 1 if found.line else 0].strip().startswith("tl.store(d_ptr + i")
    assert "square_backward stores it through d_ptr" in found.message

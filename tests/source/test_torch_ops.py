"""The table of torch's operations is what its script makes of the pinned torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gradsmith.source import knowledge, torch_ops

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "torch_ops.py"


@pytest.mark.skipif(torch.__version__.partition("+")[0] != torch_ops.TORCH, reason="another torch than the pinned one")
def test_the_checked_in_table_is_what_the_script_writes():
    run = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.parametrize(
    ("table", "inside", "outside"),
    [
        ("ALIASES", "view transpose reshape", "clone exp"),
        ("RANDOM", "bernoulli randn_like native_dropout", "zeros exp"),
        ("CREATION", "zeros arange full_like", "exp rand"),
        ("REDUCTIONS", "sum amax var", "exp view"),
        ("POINTWISE", "exp mul clamp", "sum matmul"),
        ("SEVERAL", "sort svd unbind", "exp max embedding_bag"),
        ("SOMETIMES_SEVERAL", "max median", "sort exp"),
        ("STEPS", "round sign floor_divide heaviside", "exp relu"),
        ("CORNERS", "relu abs maximum hardtanh", "exp round sigmoid bessel_j0"),
        ("INTEGERS", "argmax nonzero", "exp"),
        ("BOOLS", "eq isnan", "exp"),
        ("UNDIFFERENTIABLE", "eq nonzero", "exp view"),
        ("SAVES", "exp mul matmul", "add view neg"),
        ("SAVES_NOTHING", "add neg sum", "exp mul"),
        ("IN_TORCH", "exp relu matmul", "gelu silu inv"),
        ("METHODS", "exp add_ view", "gelu linear"),
    ],
)
def test_each_table_holds_what_it_says(table, inside, outside):
    names = getattr(torch_ops, table)
    assert not set(inside.split()) - names
    assert not set(outside.split()) & names


def test_what_is_added_by_hand_is_not_in_the_table_already():
    assert not knowledge._WITHOUT_SCHEMA & torch_ops.OPERATIONS

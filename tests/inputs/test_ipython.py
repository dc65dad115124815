"""A real IPython shell: Functions of its cells are found, linted, checked, recorded; an interrupt restores everything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython")


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    session = Path(__file__).parent / "ipython_session.py"
    done = subprocess.run([sys.executable, session], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def test_a_function_of_a_cell_is_judged_by_both_lenses_and_found_by_its_cell(seen):
    assert seen["verdict"] == "refuted"
    assert seen["inputs_from"] == ["guessed", "recorded"]
    assert ["inplace-grad", 2, 10, ["lint", "check"]] in seen["findings"]
    assert all(cell == 2 for _, cell, _, _ in seen["findings"])


def test_the_prompt_shows_the_report_and_what_ran(seen):
    assert "error[GS202 inplace-grad] Cube.backward" in seen["shown"]["report"]
    assert seen["shown"]["tape"] == "1 Function ran: Cube once (cell 4:2)"


def test_an_interrupt_stops_the_check_and_leaves_everything_as_it_was(seen):
    assert seen["raised"] == {"8": "KeyboardInterrupt", "9": "KeyboardInterrupt"}
    assert seen["restored"]

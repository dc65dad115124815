"""docs/profile.md: its example runs, and the words it promises are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import gradsmith as gs

PAGE = Path(__file__).parents[2] / "docs" / "profile.md"


def test_the_example_runs_and_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    file = tmp_path / "my_ops.py"
    file.write_text(example)
    names: dict[str, Any] = {"__name__": "my_ops"}
    exec(compile(example, str(file), "exec"), names)
    profile = names["profile"]
    assert isinstance(profile, gs.Profile) and profile.inputs_from == "given"
    loop = next(f for f in profile.findings if f.rule == "element-loop")
    shown = " ".join(capsys.readouterr().out.split())
    (promised,) = re.findall(r"^```\nwarning\[.*?\] (.*?)^```", PAGE.read_text(), re.M | re.S)
    # How many other sizes fit into the budget, and so whether the dimension is known, depends on the machine.
    before, after = " ".join(promised.split()).partition("x.shape[0]")[0], promised.rpartition("%")[2].strip()
    assert before in loop.message and loop.message.endswith(after)
    assert before in shown
    assert profile.forward_s > 0 and profile.backward_s > 0
    assert profile.saved_bytes == 256 * 64 * 4 + 256 * 4
    assert profile.peak_bytes >= profile.saved_bytes
    assert {op.op for op in profile.ops} >= {"mul", "stack"}
    assert [(use.name, use.calls) for use in names["step"].functions] == [("RowScale", 1)]


def test_public_numbers_are_part_of_the_contract() -> None:
    for name in ("findings", "forward_s", "backward_s", "saved_bytes", "peak_bytes", "ops", "lines", "growth"):
        assert f"profile.{name}" in PAGE.read_text()

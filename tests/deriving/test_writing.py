"""`gradsmith derive` and `gradsmith new` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import gradsmith as gs
from gradsmith.cli.derive_command import command as derive
from gradsmith.cli.new_command import command as new
from gradsmith.findings import GradsmithError
from gradsmith.writing.patterns import NAMES

FORWARD = """import torch


def swish(x, beta):
    return x * torch.sigmoid(beta * x)
"""


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    path = tmp_path / "ops_to_derive.py"
    path.write_text(FORWARD)
    return path


def test_derive_writes_a_file_and_never_over_one(ops: Path) -> None:
    out = ops.with_name("swish_op.py")
    call = [f"{ops}::swish", "--inputs", "randn(3, 4), tensor(1.5)", "--output", str(out)]
    result = CliRunner().invoke(derive, call, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "class Swish" in out.read_text()
    with pytest.raises(GradsmithError, match="exists; --force writes over it"):
        CliRunner().invoke(derive, call, catch_exceptions=False)


def test_derive_names_the_nearest_function(ops: Path) -> None:
    with pytest.raises(GradsmithError, match="swish"):
        CliRunner().invoke(derive, [f"{ops}::swihs"], catch_exceptions=False)


@pytest.mark.parametrize("pattern", ["loss", "surrogate"])
def test_a_new_file_passes_lint_and_has_a_test(pattern: str) -> None:
    result = CliRunner().invoke(new, ["thing", "--pattern", pattern], catch_exceptions=False)
    assert "def test_thing():" in result.output
    assert [f for f in gs.lint_source(result.output).findings if f.severity != "info"] == []


@pytest.mark.deep
@pytest.mark.parametrize("pattern", [name for name in NAMES if name != "triton"])
def test_every_pattern_passes_its_own_test(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / f"pattern_{pattern.replace('-', '_')}.py"
    result = CliRunner().invoke(
        new, [f"thing_{pattern.replace('-', '_')}", "--pattern", pattern], catch_exceptions=False
    )
    path.write_text(result.output)
    from gradsmith.lab.subject.importing import import_file

    module = import_file(path)
    getattr(module, f"test_thing_{pattern.replace('-', '_')}")()


def test_new_wants_a_pattern_or_a_formula() -> None:
    with pytest.raises(GradsmithError, match="one of --pattern"):
        CliRunner().invoke(new, ["thing"], catch_exceptions=False)

"""The documents say what is true."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradsmith.cli.group import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_the_list_of_rules_is_generated_from_the_catalogue() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "rules.md").read_text() == module.listing(), "run make docs"
    assert (ROOT / "docs" / "errors.md").read_text() == module.errors(), "run make docs"


def test_the_readme_shows_what_gradsmith_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradsmith", "check", "examples/first_gradient.py::Swish"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        capture_output=True,
        text=True,
        check=False,
    )
    blocks = re.findall(r"^```\n(error\[GS201.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert len(blocks) == 1
    for line in blocks[0].splitlines():
        assert line in done.stdout, line
    assert done.stdout.endswith("\n1 refuted\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(((?!https?:|#)[^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documents_exist(page: Path) -> None:
    text = page.read_text()
    for command in re.findall(r"`gradsmith ([a-z]+)", text):
        assert command in COMMANDS, command
    for script in re.findall(r"python (benchmarks/\w+\.py)", text):
        assert (ROOT / script).is_file(), script

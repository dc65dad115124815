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


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("docs/index.md", "my_ops.py"),
        pytest.param("docs/tutorials/kernels.md", "scale.py", marks=pytest.mark.deep),  # a kernel, interpreted
    ],
)
def test_a_page_shows_what_gradsmith_says_of_its_first_block(page: str, file: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)
    shown = re.search(r"^```\n(error\[.*?)^```$", text, re.M | re.S)
    assert block is not None and shown is not None
    (tmp_path / file).write_text(block[1], encoding="utf-8")
    call = [sys.executable, "-m", "gradsmith", "check", file]
    done = subprocess.run(
        call, cwd=tmp_path, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, check=False
    )
    assert shown[1].strip() in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    words = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)  # `kernel[grid](x)` is not a link
    for target in re.findall(r"\]\(((?!https?:|#)[^)#]+)", words):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documents_exist(page: Path) -> None:
    text = page.read_text()
    for command in re.findall(r"`gradsmith ([a-z]+)", text):
        assert command in COMMANDS, command
    for script in re.findall(r"python (benchmarks/\w+\.py)", text):
        assert (ROOT / script).is_file(), script

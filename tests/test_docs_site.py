"""The site: built without a warning and without the network, and the pages of rules show what the commands say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gradsmith.catalog import rules
from gradsmith.cli.group import COMMANDS

ROOT = Path(__file__).parents[1]
DIGITS = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_every_public_name_has_a_page() -> None:
    import gradsmith as gs

    generate = loaded("generate")
    assert {f"commands/{name}.md" for name in COMMANDS} < set(generate.command_pages())
    api = "\n".join(generate.api_pages().values())
    for name in gs.__all__:
        assert name.startswith("_") or re.search(rf"(::: \S*\.{name}$|# gs\.{name}$)", api, re.M), name


def test_every_rule_that_commands_can_show_has_its_output() -> None:
    generate = loaded("generate")
    shown = {name for name in generate.outputs() if name in rules()}
    seen = {rule.name for rule in rules().values() if {"lint", "check"} & {*rule.lenses} and not rule.package}
    assert seen <= shown, "run python docs/rule_outputs.py " + " ".join(sorted(seen - shown))


def test_the_page_of_figures_is_made_from_what_is_kept() -> None:
    subprocess.run(
        [sys.executable, "benchmarks/evidence.py", "--list"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import evidence
    finally:
        sys.path.pop(0)
    assert (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8") == evidence.page(), "run make docs"
    for entry in evidence.ENTRIES:
        assert (ROOT / "benchmarks" / entry.command[0]).is_file(), entry.name


def shape(text: str) -> str:
    """Without numbers and without the breaks of lines, which follow from them."""
    return " ".join(DIGITS.sub("0", text).split())


@pytest.mark.deep
@pytest.mark.parametrize("rule", [r for r in rules().values() if not r.package], ids=lambda rule: rule.name)
def test_outputs_are_what_the_commands_say_now(rule: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = loaded("rule_outputs")
    command, said = outputs.said(rule)
    kept = loaded("generate").outputs().get(rule.name, {"command": command, "output": ""})  # type: ignore[attr-defined]
    assert (kept["command"], shape(kept["output"])) == (command, shape(said)), "run python docs/rule_outputs.py"


@pytest.mark.deep
def test_the_page_of_derived_operations_is_what_is_derived_now() -> None:
    assert (ROOT / "docs" / "derived.md").read_text(encoding="utf-8") == loaded("derived").page(), "docs/derived.py"


@pytest.mark.deep
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(rules())
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(script|img|iframe)[^>]+src=.https?://", text), page
        assert not re.search(r"<link[^>]+rel=.stylesheet.[^>]+href=.https?://", text), page

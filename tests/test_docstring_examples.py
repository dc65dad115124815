"""Every example in a docstring of gradsmith runs."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import gradsmith

PACKAGE = Path(gradsmith.__file__).parent
FILES = sorted(file for file in PACKAGE.rglob("*.py") if ">>>" in file.read_text(encoding="utf-8"))


def module_name(file: Path) -> str:
    return ".".join(("gradsmith", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("name", [module_name(file) for file in FILES])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0 and results.failed == 0

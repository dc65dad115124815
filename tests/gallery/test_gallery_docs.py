"""The two pages about the gallery say what the files say, and their measurements still come out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gallery_files import DECLARED, ROOT, broken_files, expected_rules, gallery_files, load
from run_myth import PAGE as MYTHS
from run_myth import Myth, myths

PAGE = (ROOT / "docs" / "gallery.md").read_text()
ROWS = {row.split("](../")[1].split(")")[0]: row for row in PAGE.splitlines() if row.startswith("| [")}


@pytest.mark.parametrize("path", gallery_files(), ids=lambda p: p.stem)
def test_gallery_row(path: Path) -> None:
    row, module = ROWS[path.relative_to(ROOT).as_posix()], load(path)
    _, _, teaches, builtin, gradient, second_order, compiles, _ = (cell.strip() for cell in row.split("|"))
    assert teaches == module.TEACHES
    assert builtin.strip("`") == getattr(module, "BUILTIN", "")
    declared = dict.fromkeys(kind or what for _, what, kind in DECLARED.findall(path.read_text()))
    assert gradient == (", ".join(declared) or "exact")
    assert second_order == ("yes" if module.SECOND_ORDER else "no")
    assert compiles == ("yes" if module.COMPILES else "no")


@pytest.mark.parametrize("path", broken_files(), ids=lambda p: p.stem)
def test_broken_row(path: Path) -> None:
    row = ROWS[path.relative_to(ROOT).as_posix()]
    assert re.findall(r"`([\w-]+)`", row.split("|")[2]) == expected_rules(path)


def test_no_row_without_a_file() -> None:
    assert {ROOT / name for name in ROWS} == {*gallery_files(), *broken_files()}


@pytest.mark.parametrize("myth", myths(), ids=lambda m: f"{m.number}-{'-'.join(m.title.split()[:4])}")
def test_myth_is_still_refuted(myth: Myth) -> None:
    assert myth.output() == myth.shown


def test_myths_are_numbered_in_order() -> None:
    assert [m.number for m in myths()] == list(range(1, len(myths()) + 1))
    assert len(myths()) >= 15


def test_no_block_of_the_page_is_left_out() -> None:
    assert MYTHS.read_text().count("```python") == len(myths())

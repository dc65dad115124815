"""Every Python block of the documents runs, page by page, in the order in which they stand.

What a page takes as known stands above the block, where a reader does not see it: `<!-- setup:`, lines of Python, `-->`.
`pytest tests/test_docs_blocks.py -s -k found` prints every block and who runs it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# Pages that a test of their own runs and compares with what they promise.
ELSEWHERE = {
    "CONTRIBUTING.md": "tests/test_contributing.py",
    "docs/myths.md": "tests/gallery/test_gallery_docs.py",
    "docs/profile.md": "tests/profiling/test_profile_docs.py",
}
BLOCK = re.compile(r"(?:^<!-- setup:\n(?P<setup>(?:(?!-->).)*)-->\n)?^```python\n(?P<code>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    setup: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: run by {ELSEWHERE.get(self.page, 'this file')}"


def blocks_of(page: Path) -> list[Block]:
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, match.start("code")), match["setup"] or "", match["code"])
        for match in BLOCK.finditer(text)
    ]


PAGES = {
    page.relative_to(ROOT).as_posix(): blocks_of(page)
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
}


@pytest.mark.parametrize("page", [page for page, blocks in PAGES.items() if blocks and page not in ELSEWHERE])
def test_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in PAGES[page]:
        # A file and a module, so that the source of what the block defines can be found.
        name = f"{Path(page).stem}_line_{block.line}"
        file = tmp_path / f"{name}.py"
        file.write_text(block.setup + block.code, encoding="utf-8")
        module = ModuleType(name)
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, name, module)
        names |= {"__name__": name, "__file__": str(file)}
        known = set(names)
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
        for test in sorted(new for new in set(names) - known if new.startswith("test_")):
            names[test]()


def test_every_block_is_found() -> None:
    listed = [block for blocks in PAGES.values() for block in blocks]
    print("", *listed, sep="\n")
    written = sum(
        len(re.findall(r"^\s*```\s*python", (ROOT / page).read_text(encoding="utf-8"), re.M)) for page in PAGES
    )
    assert len(listed) == written

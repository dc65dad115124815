"""The errors that can be explained, read from errors/: one file, one entry."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from gradsmith.catalog import Rule, find

HEADINGS = ("Cause", "Remedy")


@dataclass(frozen=True)
class Entry:
    """One error of PyTorch."""

    name: str
    title: str
    page: str
    wordings: tuple[str, ...]
    seen: tuple[str, ...]
    codes: tuple[str, ...]
    bad: str
    good: str

    def section(self, heading: str) -> str:
        """The text of the page under `Cause` or `Remedy`."""
        match = re.search(rf"^{heading}\n-+\n(.*?)(?=^[^\n]+\n-+\n|\Z)", self.page, re.M | re.S)
        return match.group(1).strip() if match else ""

    @property
    def rules(self) -> list[Rule]:
        """The rules that find this mistake before PyTorch raises."""
        return [find(code) for code in self.codes]


@functools.cache
def entries() -> Mapping[str, Entry]:
    """Every entry by name."""
    import gradsmith.errors

    names = sorted(item.name for item in pkgutil.iter_modules(gradsmith.errors.__path__))
    read = [_read(importlib.import_module(f"gradsmith.errors.{name}")) for name in names]
    return {entry.name: entry for entry in read}


def _read(module: ModuleType) -> Entry:
    title, _, page = (module.__doc__ or "").strip().partition("\n")
    return Entry(
        name=module.__name__.rpartition(".")[2].replace("_", "-"),
        title=title.strip(),
        page=page.strip(),
        wordings=module.WORDINGS,
        seen=getattr(module, "SEEN", ()),
        codes=module.RULES,
        bad=module.BAD,
        good=module.GOOD,
    )

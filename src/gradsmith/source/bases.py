"""Which classes of a file derive from torch's Function, as far as the file itself tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradsmith.source.slices import ClassHeader, end_of_block

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel

FUNCTIONS = frozenset(
    f"torch.autograd{module}.{name}"
    for module in ("", ".function")
    for name in ("Function", "InplaceFunction", "NestedIOFunction")
) | {"torch.Function"}
_LAST_NAMES = frozenset(("Function", "InplaceFunction", "NestedIOFunction"))


def direct_functions(file: FileModel) -> frozenset[ClassHeader]:
    """The classes with torch's Function among their bases."""
    return frozenset(h for h in file.headers if any(is_function(file, base, h) for base in h.bases))


def is_function(file: FileModel, base: str, header: ClassHeader | None = None) -> bool:
    """Is this base class, as written in this file, torch's Function?"""
    if "." in base and base.rpartition(".")[2] not in _LAST_NAMES:
        return False
    dotted = file.imports.dotted(base)
    if dotted in FUNCTIONS:
        return True
    if "." not in base:
        if base in _LAST_NAMES and any(star.startswith("torch.autograd") for star in file.imports.stars):
            return True
        if file.imports.dotted(file.alias_of(base)) in FUNCTIONS:
            return True
    if (
        dotted.rpartition(".")[2] in _LAST_NAMES
        and header is not None
        and all(other.name != base or other.indent for other in file.headers)
    ):
        # Re-exported under its own name by the project's compatibility module: the body tells.
        body = "\n".join(file.lines[header.line : end_of_block(file.lines, header)])
        return (
            re.search(r"def forward\(\s*ctx\b", body) is not None
            and re.search(r"def backward\(\s*ctx\b", body) is not None
        )
    return False

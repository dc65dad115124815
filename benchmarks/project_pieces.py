"""What of a project the rules of lint may look at, piece by piece: a fork of code that an earlier draw had is known by it.

A piece is a statement at the top of a file that writes a custom gradient, a Triton kernel, or a module with a loop. It
is known by its text, without comments and spaces. Nothing is linted for this.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from gradsmith.source import FileModel, blocks, scan
from gradsmith.source.encoding import decoded

# The class of a custom gradient, a kernel, the forward of a module with a loop.
_GRADIENT = re.compile(r"^[ \t]*class .*Function\)|^[ \t]*def backward\(|^[ \t]*@(?:triton\.)?jit\b(?!\.)", re.M)
_LAYER = re.compile(r"^[ \t]+def forward\(", re.M)
_SPACE = re.compile(r"#.*|\s+")
PLACE = Path("/tmp/lint/pieces")


class Pieces:
    """The pieces of one project: how many write a gradient or a kernel, and the texts of all."""

    def __init__(self, folder: Path) -> None:
        self.gradients: set[str] = set()
        self.layers: set[str] = set()
        for source in scan.read_all([str(folder)]):
            if isinstance(source, scan.SourceFile):
                self._read(source)

    @property
    def all(self) -> set[str]:
        return self.gradients | self.layers

    def known_among(self, others: set[str]) -> float:
        """The share of the pieces that others have, too."""
        return len(self.all & others) / max(1, len(self.all))

    def _read(self, source: scan.SourceFile) -> None:
        known = scan.known(source.data)
        if not (known.function or known.layer or b"jit" in source.data):
            return
        try:
            file = FileModel(source.path, decoded(source.data))
        except (UnicodeDecodeError, LookupError, SyntaxError):
            return
        self.gradients |= {_digest(text) for text in _statements(file, _GRADIENT)}
        if known.layer:
            loops = (text for text in _statements(file, _LAYER) if " for " in text or " while " in text)
            self.layers |= {_digest(text) for text in loops} - self.gradients


def _statements(file: FileModel, pattern: re.Pattern[str]) -> Iterator[str]:
    lines, last = file.lines, -1
    for match in pattern.finditer(file.text):
        start = blocks.start(lines, file.line_number(match.start()) - 1)
        if start != last:
            last = start
            yield "\n".join(lines[start : blocks.end(lines, start)])


def _digest(text: str) -> str:
    return hashlib.sha256(_SPACE.sub("", text).encode(errors="replace")).hexdigest()[:16]


def remembered(folder: Path) -> Pieces:
    """The pieces of an unpacked project, read once: reading a large one takes seconds."""
    cache = PLACE / f"{folder.name}.json"
    pieces = Pieces.__new__(Pieces)
    if cache.is_file():
        pieces.gradients, pieces.layers = (set(part) for part in json.loads(cache.read_text()))
        return pieces
    pieces = Pieces(folder)
    PLACE.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps([sorted(pieces.gradients), sorted(pieces.layers)]))
    return pieces

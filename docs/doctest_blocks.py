"""Examples in docstrings as blocks of code: mkdocstrings leaves a bare `>>>` paragraph as text."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*)+", re.M)


class DoctestBlocks(griffe.Extension):
    """Puts every example between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda m: f"\n```pycon\n{m[0].rstrip()}\n```\n", obj.docstring.value)

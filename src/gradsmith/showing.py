"""How a result becomes text. `gradsmith/__init__.py` says by whom, so that results need not know their renderers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# (report, format, or None with the path whose ending chooses it) -> text
render: Callable[[Any, str | None, str], str]
# report -> HTML for a cell of a notebook
in_notebook: Callable[[Any], str]

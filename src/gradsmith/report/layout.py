"""Text that fits: sentences are wrapped to the width of the terminal, code is cut, and both keep their indentation."""

from __future__ import annotations

import sys

PLAIN = 110  # where there is no terminal to fit into
_LEAST = 40


def terminal_width() -> int:
    """The width of the terminal; COLUMNS wins, as everywhere; `PLAIN` for pipes and files."""
    width = _of_terminal() if sys.stdout.isatty() else _columns()
    return max(width, _LEAST) if width else PLAIN


def _of_terminal() -> int:
    import shutil  # 2 ms, which a run into a pipe does without

    return shutil.get_terminal_size((0, 0)).columns


def _columns() -> int:
    import os

    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdigit() else 0


def wrapped(text: str, width: int, *, first: str = "", indent: str = "") -> list[str]:
    """The lines of a paragraph. A word that is wider than the terminal (a path, an expression) gets lines of its own."""
    import textwrap

    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=indent, break_long_words=True, break_on_hyphens=False
    ) or [first.rstrip()]


def cut(text: str, width: int, keep: int = 0) -> tuple[str, int]:
    """A line of code in at most `width` columns with column `keep` in sight, and how many columns were cut at the left."""
    if len(text) <= width:
        return text, 0
    left = max(0, min(keep - width // 3, len(text) - width + 1)) if keep >= width - 2 else 0
    shown = text[left : left + width]
    if left:
        shown = f"…{shown[1:]}"
    if left + width < len(text):
        shown = f"{shown[:-1]}…"
    return shown, left

"""Colour and links for terminals, nothing for pipes. NO_COLOR and FORCE_COLOR are honoured by the caller."""

from __future__ import annotations

from dataclasses import dataclass

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}


@dataclass(frozen=True)
class Style:
    color: bool = False
    links: bool = False

    def paint(self, text: str, name: str) -> str:
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.color else text

    def link(self, text: str, address: str) -> str:
        """Text that a terminal opens on a click (OSC 8); terminals that cannot do that show the text."""
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and address else text

    def bold(self, text: str) -> str:
        return self.paint(text, "bold")

    def dim(self, text: str) -> str:
        return self.paint(text, "dim")

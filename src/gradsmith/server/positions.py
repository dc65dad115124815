"""Places in a text: gradsmith counts lines from 1 and columns in characters, the protocol counts lines from 0 and columns in units.

The unit is that of UTF-16, unless editor and server agreed on another one. Lines end as the protocol and Python's parser say
(`\\n`, `\\r\\n`, `\\r`), and not at form feeds or other separators, where `str.splitlines` would end them, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_END = re.compile(r"\r\n|\r|\n")
_WIDE = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


class ProtocolPlace(NamedTuple):
    """As the protocol counts."""

    line: int
    character: int


def units(text: str, encoding: str = "utf-16") -> int:
    """How many units of an encoding a text takes.

    >>> units("añ😋"), units("añ😋", "utf-8"), units("añ😋", "utf-32")
    (4, 7, 3)
    """
    return len(text.encode(_WIDE[encoding], "surrogatepass")) // _BYTES[encoding]


class TextLines:
    """A text, with the places in it."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text, self.encoding = text, encoding
        ends = list(_END.finditer(text))
        self.starts = [0, *(m.end() for m in ends)]
        self.stops = [*(m.start() for m in ends), len(text)]  # where the line ends, before what ends it

    def line(self, number: int) -> str:
        """The line of this number (from 0), without its end; empty beyond the text."""
        return self.text[self.starts[number] : self.stops[number]] if 0 <= number < len(self.starts) else ""

    def place(self, line: int, column: int) -> ProtocolPlace:
        """Line (from 1) and column (in characters) as the protocol counts; what lies beyond the text is its end.

        >>> TextLines("x = '😋'; y").place(1, 8)
        ProtocolPlace(line=0, character=9)
        """
        if line > len(self.starts):
            line, column = len(self.starts), len(self.text)
        text = self.line(max(line, 1) - 1)
        return ProtocolPlace(max(line, 1) - 1, units(text[: max(column, 0)], self.encoding))

    def column(self, line: int, character: int) -> int:
        """The column in characters of a place in a line (from 0); what lies beyond the line is its end.

        >>> TextLines("x = '😋'; y").column(0, 9)
        8
        """
        text = self.line(line)
        if text.isascii():
            return min(max(character, 0), len(text))
        taken = 0
        for column, letter in enumerate(text):
            if taken >= character:
                return column
            taken += units(letter, self.encoding)
        return len(text)

    def offset(self, line: int, character: int) -> int:
        """Where in the text a place of the protocol is."""
        if line >= len(self.starts):
            return len(self.text)
        return self.starts[max(line, 0)] + self.column(line, character)

    def replaced(self, start: ProtocolPlace, end: ProtocolPlace, new: str) -> str:
        """The text with everything between two places replaced.

        >>> TextLines("ab\\ncd\\n").replaced(ProtocolPlace(0, 1), ProtocolPlace(1, 1), "-")
        'a-d\\n'
        """
        first, last = self.offset(*start), self.offset(*end)
        return f"{self.text[:first]}{new}{self.text[max(first, last) :]}"

"""Codes of rules: letters that say whose they are, then digits. Selection and comments compare them here."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

OURS: Mapping[str, int] = {"GS": 3, "GSK": 2}  # letters that no other package may use, and how many digits follow
_WRITTEN = re.compile(r"([A-Z]+)([0-9]*)")


class Code(NamedTuple):
    """A code, or the beginning of one: GS2 is ("GS", "2")."""

    letters: str
    digits: str


@functools.lru_cache(maxsize=4096)
def read(written: str) -> Code | None:
    """What was written, in any case; None where it cannot be a code.

    >>> read("acme101"), read("inplace-grad")
    (Code(letters='ACME', digits='101'), None)
    """
    match = _WRITTEN.fullmatch(written.upper())
    return Code(match[1], match[2]) if match else None


def begins(code: str, written: str) -> bool:
    """Whether `written` stands for this code: all of its letters, and the first of its digits.

    >>> begins("GS202", "gs2"), begins("GS202", "GS"), begins("GSK02", "GS"), begins("GSK02", "GSK")
    (True, True, False, True)
    """
    whole, given = read(code), read(written)
    if whole is None or given is None:
        return False
    return whole.letters == given.letters and whole.digits.startswith(given.digits)

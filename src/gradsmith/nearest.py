"""What was probably meant, where a name is not known."""

from __future__ import annotations

import functools
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """A half sentence that offers what was probably meant.

    >>> nearest("inplce-grad", ["inplace-grad", "return-count"])
    "did you mean 'inplace-grad'?"
    >>> nearest("xyz", ["quick", "deep"])
    'there are quick, deep'
    """
    return _nearest(name, tuple(known))


@functools.lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[str, ...]) -> str:
    import difflib

    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4) or difflib.get_close_matches(
        name.upper(), known, n=1, cutoff=0.6
    )
    if close:
        return f"did you mean {close[0]!r}?"
    # Names of rules are too many for a sentence; whatever else is asked for by name is told.
    return f"there are {', '.join(known)}" if len(known) <= 20 else "`gradsmith rules` lists them all"

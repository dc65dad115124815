"""Explanations where errors are raised: `with gs.explain_errors():`, pytest, notebooks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from gradsmith.explaining.explanation import explain


@contextlib.contextmanager
def explain_errors(*, check: bool = False) -> Iterator[None]:
    """Add to every error that leaves the block what it means. The error itself stays what it is.

    >>> import gradsmith as gs
    >>> with gs.explain_errors():
    ...     pass
    """
    try:
        yield
    except Exception as error:
        annotate(error, check=check)
        raise


def annotate(error: BaseException, *, check: bool = False) -> str:
    """The explanation, added to the error as a note that Python prints below the traceback; nothing where it is unknown."""
    if any(note.startswith("gradsmith: ") for note in getattr(error, "__notes__", ())):
        return ""  # by a block within this one
    try:
        note = explain(error, check=check).short()
    except Exception:  # the user's own error must be seen, whatever happens to us
        return ""
    if not note:
        return ""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:  # notes came with 3.11
        print(note, file=sys.stderr)
    return note

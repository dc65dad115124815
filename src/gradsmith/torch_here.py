"""Which torch is installed, without importing it: what is missing or too old is one sentence, before anything runs.

What a torch can do is asked where it is used (lab/process/torch_says.py). Only where to begin, and how far this release was
tested, are versions.
"""

from __future__ import annotations

import importlib.util
import os
import re

from gradsmith.about import MISSING_TORCH, VERSION

OLDEST = (2, 6)
TESTED = (2, 15)  # the newest that `make test-versions` has seen; see docs/compatibility.md


def need_torch(what: str) -> None:
    """Raise in one sentence where torch is missing, or older than the oldest that works."""
    if trouble := MISSING_TORCH.format(what=what) if _written() is None else too_old(what):
        from gradsmith.findings import GradsmithError  # only here: whoever runs pytest loads this file

        raise GradsmithError(trouble)


def too_old(what: str) -> str:
    """A sentence where the torch that is installed is older than the oldest that works; else nothing."""
    found = _written() or ""
    if (_numbers(found) or OLDEST) >= OLDEST:
        return ""
    return f"{what} needs PyTorch {_said(OLDEST)} or newer, and {found} is installed here; run: pip install --upgrade torch"


def newer_than_tested() -> str:
    """A sentence for the report, where this torch came out after this gradsmith; else nothing."""
    found = _written() or ""
    if (_numbers(found) or TESTED) <= TESTED:
        return ""
    return f"torch {found} is newer than gradsmith {VERSION}, which was tested with {_said(OLDEST)} to {_said(TESTED)}"


def _written() -> str | None:
    """The version that torch states in its own file; "" where that cannot be read, None where there is no torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None:
        return None
    try:
        with open(os.path.join(os.path.dirname(spec.origin or ""), "version.py"), encoding="utf-8") as file:
            stated = re.search(r"^__version__ = ['\"]([^'\"]+)['\"]", file.read(), re.MULTILINE)
    except OSError:  # a build of somebody's own: it is tried
        return ""
    return stated[1] if stated else ""


def _numbers(version: str) -> tuple[int, int] | None:
    """The first two numbers of a version.

    >>> _numbers("2.13.0+cpu")
    (2, 13)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _said(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))

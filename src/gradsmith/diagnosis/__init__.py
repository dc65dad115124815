"""What kind of wrong? One file per cause: does the claimed gradient fit this mistake?

Each cause has a page (its docstring), `RANK` (more specific causes first), `BAD`, and `fits(case)`. One that says where or how
the gradient is wrong, and not by which mistake, has `NAMES_A_MISTAKE = False`. Like rules, a cause is one new file and no registration. `gradsmith explain wrong-gradient/transposed` shows its page.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.diagnosis.case import Case, Fit

_NOT_CAUSES = {"case", "truth", "repair", "mutate", "vocabulary", "mending"}
_FOR_COMPLEX = {"conjugated", "sign", "transposed"}  # the others compare sizes and order, which complex numbers lack


@dataclass(frozen=True)
class Cause:
    """One way of being wrong."""

    name: str
    rank: int
    title: str
    page: str
    bad: str
    fits: Callable[[Case], Fit | None]
    names_a_mistake: bool = True  # what was written instead of the derivative


@functools.cache
def causes() -> Mapping[str, Cause]:
    """Every cause by name, the most specific first."""
    found = []
    for item in pkgutil.iter_modules(__path__):
        if item.name in _NOT_CAUSES:
            continue
        module = importlib.import_module(f"{__name__}.{item.name}")
        title, _, page = (module.__doc__ or "").strip().partition("\n")
        name = item.name.replace("_", "-")
        names = getattr(module, "NAMES_A_MISTAKE", True)
        found.append(Cause(name, module.RANK, title.rstrip("."), page.strip(), module.BAD, module.fits, names))
    return {cause.name: cause for cause in sorted(found, key=lambda c: c.rank)}


def diagnose(case: Case) -> Fit | None:
    """The first cause that fits, or None."""
    for cause in causes().values():
        if case.claimed.is_complex() and cause.name not in _FOR_COMPLEX:
            continue
        fit = cause.fits(case)
        if fit is not None:
            return fit.named(cause.name)
    return None

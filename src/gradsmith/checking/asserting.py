"""`assert_gradients`: a whole test in one line."""

from __future__ import annotations

from typing import Any

from gradsmith.checking.run import check
from gradsmith.findings import GradientError, Report


def assert_gradients(fn: Any, *inputs: Any, **options: Any) -> Report:
    """Check `fn` and raise `GradientError`, an AssertionError whose text is the report, unless it is verified.

    Options are those of `gs.check`; without inputs the declared, recorded or guessed ones are used.

    >>> import torch
    >>> assert_gradients(torch.tanh, torch.randn(3, dtype=torch.float64, requires_grad=True)).ok
    True
    """
    __tracebackhide__ = True  # pytest: end the traceback at the user's own line
    report = check(fn, *inputs, **options)
    if not report.ok:
        raise GradientError("\n" + str(report))
    return report

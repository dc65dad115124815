"""`gs.second_order(fn, x)`: does every custom Function on the way give a second derivative, and is it right?

The call is run once while every custom Function is recorded with its inputs; each is then examined alone, by the same
measurement that `gs.check(..., second_order=True)` uses. A wrong or missing second derivative in one of them makes every
Hessian through it wrong, mostly in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gradsmith.checking.run import check
from gradsmith.findings import Report
from gradsmith.recording import Call, record


@dataclass(frozen=True)
class Support:
    """What was found about one custom Function."""

    name: str
    supported: bool
    reason: str
    """Empty where the second derivative is right."""


@dataclass(frozen=True)
class SecondOrderTrust:
    """Whether second derivatives through a call can be trusted."""

    functions: tuple[Support, ...]

    @property
    def ok(self) -> bool:
        """Every custom Function on the way has a second derivative that is right; so it is without any."""
        return all(found.supported for found in self.functions)

    def __str__(self) -> str:
        if not self.functions:
            return "No custom Function on the way: PyTorch's own operations support second order."
        rows = [
            f"{found.name}: {'second order is right' if found.supported else found.reason}" for found in self.functions
        ]
        return "\n".join(rows)


def second_order(fn: Any, *inputs: Any) -> SecondOrderTrust:
    """Whether each custom Function that `fn(*inputs)` runs supports second order; `fn` is a function or a module.

    >>> print(second_order(torch.sin, torch.randn(3, requires_grad=True)))
    No custom Function on the way: PyTorch's own operations support second order.
    """
    if not callable(fn):
        raise TypeError(f"second_order: expected a function or a module, not {type(fn).__name__}.")
    leaves = [
        x.detach().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]
    with record() as tape, torch.enable_grad():
        fn(*leaves)
    return SecondOrderTrust(tuple(_examined(tape.of(cls)) for cls in tape.functions))


def _examined(calls: list[Call]) -> Support:
    """One Function, at the first example of each way in which it was called."""
    name = calls[0].name
    for call in calls:
        if not call.examples:
            return Support(name, False, "not verified: its inputs could not be kept (too large, or not plain tensors)")
        report = check(call.cls, *call.examples[0], second_order=True)
        judged = _judged(name, report)
        if not judged.supported:
            return judged
    return Support(name, True, "")


def _judged(name: str, report: Report) -> Support:
    bad = [found for found in report.findings if found.severity == "error"]
    if bad:
        return Support(name, False, bad[0].message)
    subject = report.subjects[0]
    return Support(name, report.ok, "" if report.ok else f"not verified: {subject.reason}")

"""`with gs.profile_step():` around a training step ranks the custom Functions in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsmith.lab.process import device
from gradsmith.lab.subject.target import short_name, where


@dataclass
class FunctionUse:
    """What one custom Function cost in the step: its own Python code and the operations it ran."""

    name: str
    path: str | None
    line: int | None
    calls: int = 0
    forward_s: float = 0.0
    backward_s: float = 0.0

    @property
    def total_s(self) -> float:
        return self.forward_s + self.backward_s


@dataclass
class StepRanking:
    """The ranking; filled in when the block ends."""

    seconds: float = 0.0
    functions: list[FunctionUse] = field(default_factory=list)

    def __str__(self) -> str:
        from gradsmith.report.profile_table import bar, duration

        rows = [f"step: {duration(self.seconds)}"]
        for use in self.functions:
            share = use.total_s / self.seconds if self.seconds else 0.0
            rows.append(
                f"  {bar(share)} {share:>4.0%}  {use.name} x{use.calls}  forward {duration(use.forward_s)}, "
                f"backward {duration(use.backward_s)}"
            )
        return "\n".join(rows if self.functions else [*rows, "  no custom Function ran"])


@contextmanager
def profile_step() -> Iterator[StepRanking]:
    """Rank the custom Functions that run inside the block; do not run torch.compile in it for the first time.

    >>> import torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         return 2 * grad_output
    >>> x = torch.randn(4, requires_grad=True)
    >>> with profile_step() as step:
    ...     Double.apply(x).sum().backward()
    >>> [(use.name, use.calls) for use in step.functions]
    [('Double', 1)]
    """
    step = StepRanking()
    uses: dict[type, FunctionUse] = {}
    undo = [put_back for cls in user_functions() for put_back in _watched(cls, uses)]
    clock = device.clock()
    start = clock()
    try:
        yield step
    finally:
        step.seconds = clock() - start
        for put_back in reversed(undo):
            put_back()
        step.functions = sorted(uses.values(), key=lambda use: -use.total_s)


def user_functions() -> list[type[torch.autograd.Function]]:
    """Every Function class that exists in this process and is not torch's own."""
    found: list[type[torch.autograd.Function]] = []
    todo: list[type[Any]] = list(torch.autograd.Function.__subclasses__())
    while todo:
        cls = todo.pop()
        todo.extend(cls.__subclasses__())
        if not cls.__module__.startswith("torch.") and cls not in found:
            found.append(cls)
    return found


def _watched(cls: type, uses: dict[type, FunctionUse]) -> Iterator[Callable[[], None]]:
    for name, phase in (("forward", "forward"), ("backward", "backward"), ("vjp", "backward")):
        own = cls.__dict__.get(name)
        if own is None:
            continue  # an inherited method is watched where it is defined, and counted for the class that defines it
        setattr(cls, name, staticmethod(_timed(cls, getattr(cls, name), phase, uses)))
        yield lambda name=name, own=own: setattr(cls, name, own)  # type: ignore[misc]


def _timed(cls: type, original: Callable[..., Any], phase: str, uses: dict[type, FunctionUse]) -> Callable[..., Any]:
    clock = device.clock()

    def run(*args: Any, **kwargs: Any) -> Any:
        start = clock()
        try:
            return original(*args, **kwargs)
        finally:
            took = clock() - start
            use = uses.get(cls) or uses.setdefault(cls, FunctionUse(short_name(cls), *where(cls)))
            if phase == "forward":
                use.calls += 1
                use.forward_s += took
            else:
                use.backward_s += took

    return run

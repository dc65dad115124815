"""A stop for what never ends: a loop whose condition was guessed, or an iteration that does not converge on a guess."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class NoEnd(RuntimeError):
    """More operations than any forward needs on a handful of numbers."""


_running: list[Stopped] = []


class Stopped(TorchFunctionMode):
    """Raises NoEnd after so many of torch's functions and calls of `spend`.

    >>> import torch
    >>> with Stopped(3):
    ...     while torch.tensor(True):
    ...         torch.ones(2)
    Traceback (most recent call last):
        ...
    gradsmith.inputs.guess.endless.NoEnd: more than 3 operations on guessed inputs
    """

    def __init__(self, limit: int = 20_000) -> None:
        super().__init__()
        self.limit = limit
        self.count = 0

    def __enter__(self) -> Any:
        _running.append(self)
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        _running.remove(self)
        super().__exit__(*raised)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch._C._set_grad_enabled:  # stopping there would leave gradients off for good
            self.spend()
        return func(*args, **(kwargs or {}))

    def spend(self) -> None:
        self.count += 1
        if self.count > self.limit:
            raise NoEnd(f"more than {self.limit} operations on guessed inputs")


def spend() -> None:
    """One call of a guessed function: inside torch's own operators no mode is asked, so the function itself counts."""
    for stopped in _running:
        stopped.spend()

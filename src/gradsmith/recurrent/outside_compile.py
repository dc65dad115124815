"""Planning and ctypes calls are not for torch.compile to trace: it runs them as they are, between two graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

F = TypeVar("F", bound=Callable[..., Any])


def outside_compile(function: F) -> F:
    """`torch.compiler.disable`, but torch._dynamo (more than a second to import) is only loaded by those who compile."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*args, **kwargs)
        return function(*args, **kwargs)

    return cast(F, call)

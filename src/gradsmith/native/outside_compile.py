"""Planning and ctypes calls are not for torch.compile to trace: it runs them as they are, between two graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch._C._dynamo.eval_frame import get_eval_frame_callback

F = TypeVar("F", bound=Callable[..., Any])


def outside_compile(function: F) -> F:
    """`torch.compiler.disable`, but torch._dynamo (more than a second to import) is only loaded by those who compile."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return leave_graph("it calls compiled C", function, *args, **kwargs)
        return untraced(function, *args, **kwargs)

    return cast(F, call)


def leave_graph(reason: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run `function` between two graphs; under fullgraph=True, which allows no such thing, say why."""
    torch._dynamo.graph_break(
        msg=f"gradsmith.{function.__name__} cannot be part of this graph, because {reason}; compile without fullgraph=True."
    )
    return untraced(function, *args, **kwargs)


def untraced(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `function`. Between two graphs torch.compile still looks at every function that runs, hence the question."""
    if torch.compiler.is_compiling() or get_eval_frame_callback():
        return torch.compiler.disable(function)(*args, **kwargs)
    return function(*args, **kwargs)

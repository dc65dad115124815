"""Observed runs are eager runs: a compiled forward hides from wrappers, and compiles anew for every shape."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import torch


def uncompiled() -> contextlib.AbstractContextManager[Any]:
    """No torch.compile inside the block. Asked only where the compiler is loaded: importing it takes seconds."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance

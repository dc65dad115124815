"""The subject's own code: the functions that compute its outputs and gradients, and what they call in the same file."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.target import Target, backward_of, has_setup_context


def codes_of(lab: Lab) -> set[CodeType]:
    """Those that are known beforehand: forward, setup_context and backward of every Function that takes part."""
    found = {code for part in _parts(lab.target) if (code := code_of(part)) is not None}
    for cls in lab.classes:
        methods = [cls.forward, backward_of(cls), *([cls.setup_context] if has_setup_context(cls) else [])]
        found |= {code for method in methods if (code := code_of(method)) is not None}
    return {code for code in found if not _is_torchs(code)}


def _parts(target: Target) -> Iterator[Any]:
    if target.function is not None:
        return
    if target.module is not None:
        yield type(target.module).forward
    elif target.kind == "custom_op":
        op = target.original
        yield from (
            getattr(op, "_init_fn", None),
            getattr(op, "_backward_fn", None),
            getattr(op, "_setup_context_fn", None),
        )
    else:
        yield target.original


def code_of(value: Any) -> CodeType | None:
    """The code of a function or method, under all that wraps it."""
    try:
        found = getattr(inspect.unwrap(getattr(value, "__func__", value)), "__code__", None)
    except ValueError:  # wraps itself
        return None
    return found if isinstance(found, CodeType) else None


def _is_torchs(code: CodeType) -> bool:
    import torch

    return code.co_filename.startswith(str(torch.__path__[0]))

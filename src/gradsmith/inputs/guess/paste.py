"""Guessed values as code to paste: short where they were drawn, literal where they were not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.inputs.guess.functions import Written
from gradsmith.inputs.guess.objects import written
from gradsmith.inputs.guess.proposals import LISTS, Proposal
from gradsmith.lab.subject.code import tensor_code
from gradsmith.lab.subject.wrapped import Wrapped


def value_code(proposal: Proposal, value: Any) -> str:
    """
    >>> value_code(Proposal(0, value=0.7), 0.7)
    '0.7'
    """
    if isinstance(value, (list, tuple)) and proposal.kind in LISTS:
        return f"[{', '.join(value_code(replace(proposal, kind=LISTS[proposal.kind]), v) for v in value)}]"
    if isinstance(value, Wrapped):
        parts = [value_code(p, part) for p, part in zip(proposal.value.parts, value.parts)]
        return f"gs.wrapped({', '.join([getattr(value.make, '__name__', repr(value.make)), *parts])})"
    if isinstance(value, dict) and proposal.kind == "table":
        one = replace(proposal, kind="floating")
        return "{" + ", ".join(f"{key!r}: {value_code(one, v)}" for key, v in value.items()) + "}"
    if isinstance(value, nn.Linear):
        return f"torch.nn.Linear({value.in_features}, {value.out_features}).double()"
    if not isinstance(value, Tensor):
        return value.code if isinstance(value, Written) else written(value)
    sizes = ", ".join(map(str, value.shape)) or "()"
    if proposal.kind == "integer":
        shape = repr(tuple(value.shape))
        if proposal.domain == "ramp":
            return tensor_code(value)
        if proposal.domain == "reversed":
            wide = f".expand({sizes}).clone()" if value.ndim > 1 else ""
            return f"torch.arange({value.shape[-1] if value.ndim else 1}).flip(0){wide}"
        return f"torch.randint(0, {2 if proposal.domain == 'binary' else 3}, {shape})"
    if proposal.kind == "bool":
        return f"torch.rand({sizes}) > 0.4"
    typed = sizes if value.dtype == torch.float32 else f"{sizes}, dtype={value.dtype}"
    if proposal.domain == "normal":
        return f"torch.randn({typed}{', requires_grad=True' if value.requires_grad else ''})"
    drawn = {
        "positive": f"(torch.rand({typed}) + 0.5)",
        "unit": f"(torch.rand({typed}) * 0.8 + 0.1)",
        "wide": f"(3 * torch.randn({typed}))",
        "binary": f"(torch.rand({sizes}) > 0.5).to({value.dtype})",
    }
    if proposal.domain not in drawn:
        return tensor_code(value)  # a matrix with a property that no one-liner gives
    return drawn[proposal.domain] + (".requires_grad_()" if value.requires_grad else "")

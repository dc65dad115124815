"""What backward returned, beside what forward was given, before the engine casts and sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.observe import BackwardCall, ForwardCall, Trace
from gradsmith.lab.once import holds_a_run, once
from gradsmith.lab.subject.arguments import parameter_names
from gradsmith.lab.subject.target import has_setup_context, short_name


@dataclass(frozen=True)
class RawPair:
    """One input of one Function and the raw gradient returned for it."""

    function: str
    name: str
    position: int
    given: Any
    returned: Any
    needed: bool


@holds_a_run
@once
def observed_trace(lab: Lab) -> Trace:
    """A forward and a backward as they are, in the user's own precision; a backward that raises still leaves a trace."""
    run = lab.run()
    if run.differentiable:
        try:
            run.gradients(run.normal(lab.generator(3)))
        except Exception:  # reported by backward-raised; what was returned before the engine complained is in the trace
            return run.trace
    return run.trace


def raw_pairs(lab: Lab) -> Iterator[RawPair]:
    """Every (input, raw gradient) of every custom Function that took part."""
    trace = observed_trace(lab)
    for backward in trace.backwards:
        forward = forward_of(trace, backward)
        if forward is None:
            continue
        names = argument_names(backward.cls, len(forward.args))
        needs = forward.needs_input_grad or tuple(True for _ in forward.args)
        for i, (given, returned) in enumerate(zip(forward.args, backward.returned)):
            needed = needs[i] if i < len(needs) else False
            yield RawPair(short_name(backward.cls), names[i], i, given, returned, needed)


def narrowed(lab: Lab) -> dict[str, float]:
    """By input: the rounding error of a gradient that is returned in a narrower type than the input has."""
    found: dict[str, float] = {}
    for pair in raw_pairs(lab):
        kinds = [t.dtype for t in (pair.returned, pair.given) if isinstance(t, Tensor) and t.is_floating_point()]
        if len(kinds) == 2 and torch.finfo(kinds[0]).eps > torch.finfo(kinds[1]).eps:
            found[pair.name] = torch.finfo(kinds[0]).eps
    return found


def forward_of(trace: Trace, backward: BackwardCall) -> ForwardCall | None:
    """The forward whose ctx this backward got."""
    return next((f for f in trace.forwards if f.ctx is backward.ctx), None)


def argument_names(cls: type, count: int) -> list[str]:
    """Forward's own names for its inputs, `args[1]` where they come through a star."""
    names = parameter_names(cls.forward, skip_first=not has_setup_context(cls))  # type: ignore[attr-defined]
    star = names.pop()[:-1] if names and names[-1].endswith("*") else None
    extra = [f"{star or 'input'}[{i}]" for i in range(count - len(names))]
    return [*names, *extra][:count] if len(names) + len(extra) >= count else [f"input[{i}]" for i in range(count)]

"""backward computes again what forward had, and could have kept for nothing

What it finds
-------------
An operation of backward that computes exactly what forward computed from the same values, although the result was saved, or is
the output, which is in memory anyway, or could have been saved in place of an input that backward needs for nothing else.
Found by numbering values: same operation on the same values is the same value.

Why it matters
--------------
Saving the output instead of the input costs no memory and spares the operation. Measured on torch 2.13, one thread,
tanh of 512 x 256, forward and backward: 1.06 ms when tanh is computed twice, 0.58 ms when the output is saved.

Known problems
--------------
Recomputing something that was not kept is a legitimate trade of time for memory; it is not reported where keeping it would
take more memory than what is saved now.

References
----------
Measured on torch 2.13, see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.profiling.events import Event

CODE = "GS509"
SEVERITY = "info"
EXPLAINS = ("slower-than-autograd",)
FIXABLE = False
BAD = """
import torch


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        y = torch.sigmoid(x)
        return grad_output * y * (1 - y)


gradsmith_inputs = {"Sigmoid": lambda: (torch.randn(256, 256, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return torch.ops.aten.sigmoid_backward(grad_output, y)


gradsmith_inputs = {"Sigmoid": lambda: (torch.randn(256, 256, dtype=torch.float64, requires_grad=True),)}
"""

_NO_MORE = 1.1  # times the bytes saved now; the results may bring a small one along
_SMALL = 64  # elements; below, one operation more or less is not worth a sentence


def profile(profile: Profile) -> Iterator[Finding]:
    kept = {s.storage: "saved" for s in profile.saved} | dict.fromkeys(profile.recording.outputs, "the output")
    again, had = _computed_again(profile)
    if not again:
        return
    values, overwritten = profile.flow.values, profile.flow.mutations
    there = {
        v: kept[s] for v, e in had.items() for s in e.fresh if s in kept and s not in overwritten
    }  # value -> where it is
    free = [e for e in again if values[e.index] in there]
    only = _read_for_nothing_else(profile, again)
    wanted = [e for e in again if values[e.index] not in there and _used(profile, e, again)]
    worth = only and wanted and sum(e.written_bytes for e in wanted) <= _NO_MORE * sum(only.values())
    events = again if worth else free
    if not events:
        return
    first = had[values[events[0].index]]
    line = f" (line {first.site.line})" if first.site else ""
    if worth:
        names = ", ".join(profile.recording.inputs.get(s, "a saved tensor") for s in only)
        why = f"which forward computed{line}; {names} is saved for nothing else"
        advice = f"Save the result of `{events[0].op}` in forward instead of {names}, and use it here: it takes no more memory."
    else:
        where = there[values[events[0].index]]
        why = f"which forward computed{line} and {_kept(where)}"
        advice = (
            "Use the saved tensor instead of this line."
            if where == "saved"
            else "Save the output in forward, and use it here; it is in memory anyway."
        )
    share = profile.share(events)
    yield profile.finding(
        events[0].site,
        f"backward computes `{events[0].op}` again at {profile.place(events[0].site)}, {why} ({share:.0%} of the run time).",
        advice=advice,
        share=share,
        gain=profile.gain(profile.seconds(events)),
        evidence={"ops": [e.op for e in events]},
    )


def _computed_again(profile: Profile) -> tuple[list[Event], dict[int, Event]]:
    """Operations of the user's backward whose value forward had, and that value's operation in forward."""
    values, events = profile.flow.values, profile.recording.events
    computed = [
        e for e in events if e.phase == "forward" and e.reads and e.fresh and e.op not in know.FILLED_NOT_COMPUTED
    ]
    had = {values[e.index]: e for e in computed if not e.is_view}
    mine = [e for e in events if e.phase == "backward" and e.own_frames and not e.is_view]
    return [e for e in mine if values[e.index] in had and sum(a.numel for a in e.outputs) >= _SMALL], had


def _read_for_nothing_else(profile: Profile, again: list[Event]) -> dict[int, int]:
    """Saved tensors that backward reads only to compute again what forward had, with their bytes."""
    redone = {e.index for e in again}
    saved = {s.storage: s.storage_bytes for s in profile.saved}
    readers = profile.flow.readers
    return {
        s: saved[s]
        for e in again
        for s in (a.storage for a in e.reads)
        if s in saved and all(r.index in redone for r in readers[s] if r.phase == "backward" and not r.is_view)
    }


def _used(profile: Profile, event: Event, again: list[Event]) -> bool:
    """Whether backward needs this value for more than computing others again."""
    redone = {e.index for e in again}
    return any(r.index not in redone for r in profile.flow.consumers(event))


def _kept(where: str) -> str:
    return "saved" if where == "saved" else "returned"

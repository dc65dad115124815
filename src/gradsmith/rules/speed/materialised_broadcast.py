"""broadcasting builds a large tensor only to sum it away

What it finds
-------------
A product or difference that broadcasts to a tensor many times larger than both operands, which is then reduced
again; and `repeat` where broadcasting would do.

Why it matters
--------------
The large tensor is written, read, kept for backward and read again. A matrix product, einsum or cdist never builds it. Measured
on torch 2.13, one thread, 96 x 128 by 96 x 128, forward and backward: 1.99 ms by broadcasting, 0.25 ms as a product.

Known problems
--------------
A reduction of another kind of function has no such shortcut; it is information only. torch.compile often fuses it.

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

CODE = "GS511"
SEVERITY = "info"
EXPLAINS = ("slower-than-autograd",)
FIXABLE = False
BAD = """
import torch


def bilinear(x, w):
    return (x.unsqueeze(1) * w.unsqueeze(0)).sum(-1)


gradsmith_inputs = {
    "bilinear": lambda: (
        torch.randn(64, 128, dtype=torch.float64, requires_grad=True),
        torch.randn(64, 128, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = """
import torch


def bilinear(x, w):
    return x @ w.t()


gradsmith_inputs = {
    "bilinear": lambda: (
        torch.randn(64, 128, dtype=torch.float64, requires_grad=True),
        torch.randn(64, 128, dtype=torch.float64, requires_grad=True),
    )
}
"""

_TIMES = 4


def profile(profile: Profile) -> Iterator[Finding]:
    seen: set[tuple[str, int]] = set()
    for event in profile.recording.of("forward"):
        site = event.site
        if site is None or event.is_view or not event.outputs or (site.path, site.line) in seen:
            continue
        out = event.outputs[0]
        if event.op == "repeat" and event.own_frames:
            chain, kind = [event, *_pointwise(profile, event)], "repeat"
        elif event.op in ("mul", "sub", "div") and out.numel >= _TIMES * max(
            (a.distinct for a in event.reads), default=out.numel
        ):
            chain, kind = _reduced(profile, event), "sub" if event.op == "sub" else "mul"
        else:
            continue
        if len(chain) < 2:
            continue
        seen.add((site.path, site.line))
        events = profile.with_backward([*chain, *_as_large(profile, event)])
        share = profile.share(events)
        yield profile.finding(
            site,
            f"`{event.op}` builds a tensor of shape {out.shape} ({out.bytes:,} bytes) "
            + ("that broadcasting would not write" if kind == "repeat" else "that is summed in the next step")
            + f". This takes {share:.0%} of the time of forward and backward.",
            advice=_ADVICE[kind],
            share=share,
            gain=_gain(profile, event, chain, kind, events),
            evidence={"bytes": out.bytes},
        )


_ADVICE = {
    "mul": "Use a matrix product (`a @ b`) or torch.einsum, which sums while it multiplies and never builds this tensor.",
    "sub": "Use torch.cdist, or expand the square: (a - b)^2 = a^2 - 2 a @ b + b^2.",
    "repeat": "Leave the repeat out and let broadcasting do it (or use expand, which copies nothing).",
}


def _reduced(profile: Profile, event: Event) -> list[Event]:
    """The chain of operations from the large tensor to the reduction that makes it small again."""
    chain, size = [event], event.outputs[0].numel
    while len(chain) < 5:
        following = [e for e in profile.flow.consumers(chain[-1]) if e.phase == "forward"]
        if len({e.index for e in following}) != 1 or not following[0].outputs:
            return []
        chain.append(following[0])
        if following[0].op in know.SUMMING:
            return chain if following[0].outputs[0].numel * _TIMES <= size else []
        if following[0].op not in know.BETWEEN_BROADCAST_AND_SUM:
            return []
    return []


def _as_large(profile: Profile, event: Event) -> list[Event]:
    """What else the same line spreads out to the same size: F.cosine_similarity does it with both operands."""
    size = event.outputs[0].numel
    line = [e for e in profile.recording.of("forward") if e.site == event.site and not e.is_view]
    return [e for e in line if any(a.numel == size for a in (*e.outputs, *e.reads))]


def _pointwise(profile: Profile, event: Event) -> list[Event]:
    """The operations that read a repeated tensor, if all of them would broadcast."""
    following = [e for e in profile.flow.consumers(event) if e.phase == "forward"]
    ok = following and all(e.op in know.BROADCASTING for e in following)
    return following[:1] if ok else []


def _gain(profile: Profile, event: Event, chain: list[Event], kind: str, events: list[Event]) -> float:
    """By one matrix product and its two gradients, or by the same operations without the repeated operand."""
    if kind == "repeat":
        rest = profile.with_backward(chain[1:])
        moved = sum(e.read_bytes + e.written_bytes for e in rest)
        # What reads the repeated operand reads a small one instead, which stays in the cache.
        unread = sum(event.outputs[0].bytes for e in rest if any(a.storage in event.fresh for a in e.reads))
        return profile.gain(profile.seconds(events) - profile.seconds(rest) * (1 - unread / max(1, moved)))
    from gradsmith.profiling.whatif import Estimate

    machine = profile.machine
    flops = 2 * event.outputs[0].numel
    small = 8 * machine.graph_op_s if kind == "sub" else 0.0  # the squares and sums of the expanded form
    product = machine.seconds(sum(a.bytes for a in event.reads), flops)
    calls = small + 3 * machine.graph_op_s
    return profile.gain(
        profile.seconds(events), Estimate(calls + 3 * product, calls + 1.5 * product, calls + 6 * product)
    )

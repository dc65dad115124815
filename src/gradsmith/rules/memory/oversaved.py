"""backward keeps far more memory alive than it needs

What it finds
-------------
Among what is saved for backward: a floating mask of zeros and ones that a bool tensor would hold in a quarter of the bytes; a
small slice that keeps the large tensor that it is part of alive; and a tensor that one cheap operation makes from others saved
beside it.

Why it matters
--------------
Saved tensors live from forward to backward, for every layer at once: they are what limits the batch size. A float32 mask
takes four times the bytes of a bool one: 262,144 against 65,536 for dropout of 256 x 256.

Known problems
--------------
Recomputing costs time; for an operation dearer than a few pointwise passes saving is the better choice, and such
operations are not reported.

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
    from torch import Tensor

    from gradsmith.lab import Lab
    from gradsmith.profiling import Profile
    from gradsmith.profiling.events import Event, Saved

CODE = "GS406"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = (x > 0).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask


gradsmith_inputs = {"ReLU": lambda: (torch.randn(64, 64, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = x > 0
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask


gradsmith_inputs = {"ReLU": lambda: (torch.randn(64, 64, dtype=torch.float64, requires_grad=True),)}
"""

_LEAST = 1024  # bytes


def profile(profile: Profile) -> Iterator[Finding]:
    events = profile.recording.events
    makers = {storage: e for e in events if e.phase == "forward" for storage in e.fresh}
    kept = {s.storage for s in profile.saved}
    total = profile.saved_bytes or 1
    seen: set[int] = set()
    for saved in profile.saved:
        if saved.storage in seen or saved.role != "intermediate" or saved.storage_bytes < _LEAST:
            continue
        seen.add(saved.storage)
        maker = makers.get(saved.storage)
        if maker is None or not (maker.own_frames and not maker.grad_mode):
            continue  # what autograd saves by itself is not the user's choice
        why, spared, advice = _excess(saved, maker, kept)
        if not why:
            continue
        share = spared / total
        yield profile.finding(
            maker.site,
            f"{profile.name} keeps {saved.storage_bytes:,} bytes for backward, made at {profile.place(maker.site)}, {why} "
            f"({share:.0%} of what it saves could go).",
            advice=advice,
            share=share,
            matters=0.2,
            evidence={
                "bytes": saved.storage_bytes,
                "spared_bytes": spared,
                "saved_gain": total / max(1, total - spared),
            },
        )


def _excess(saved: Saved, maker: Event, kept: set[int]) -> tuple[str, int, str]:
    if saved.is_mask:
        spared = saved.storage_bytes - saved.storage_bytes // (8 if saved.dtype == "float64" else 4)
        return "a floating mask of zeros and ones", spared, "Save the bool tensor; multiplying by it works as well."
    if saved.bytes * 4 <= saved.storage_bytes:
        why = f"of which only {saved.bytes:,} are used: a slice keeps the whole tensor alive"
        return why, saved.storage_bytes - saved.bytes, "Save `slice.clone()`."
    reads = {a.storage for a in maker.reads if a.numel > 1}
    if maker.op in know.CHEAP and reads and reads <= kept - {saved.storage}:
        return (
            f"though `{maker.op}` of what else it saves gives it back",
            saved.storage_bytes,
            "Recompute it in backward.",
        )
    return "", 0, ""


def probe(lab: Lab) -> Iterator[Finding]:
    """Bytes saved against bytes needed, for what is neither input nor output: those live anyway."""
    from gradsmith.lab.measure.memory import whole
    from gradsmith.lab.subject.target import short_name

    for call in lab.observed.trace.forwards:
        mine = (t for t in call.saved if t is not None and not any(t is k for k in (*call.args, *call.outputs)))
        own = [t for t in mine if whole(t)]  # backward ran, and may have freed some
        saved = sum(_held_bytes(t, call.args) for t in own)
        needed = sum(_needed_bytes(t) for t in own)
        if own and saved >= _LEAST and saved >= 2 * needed:
            name = short_name(call.cls)
            yield lab.finding(
                f"{name}.forward saves {saved:,} bytes that are neither an input nor an output; {needed:,} bytes would hold the same values.",
                at="save",
                function=name,
                advice="Save a mask of zeros and ones as bool."
                if any(_needed_bytes(t) < t.nbytes for t in own)
                else "Save a clone of the slice: the slice keeps the whole tensor in memory.",
                evidence={"saved": saved, "needed": needed},
            )
            return


def _held_bytes(tensor: Tensor, args: tuple[object, ...]) -> int:
    """What stays alive because of this tensor: its whole storage, unless an input holds that anyway."""
    from torch import Tensor

    from gradsmith.lab.subject.wrapped import has_memory

    if not has_memory(tensor):
        return tensor.nbytes  # a subclass that wraps others: its memory is theirs
    storage = tensor.untyped_storage()
    owners = [a for a in args if isinstance(a, Tensor) and has_memory(a)]
    shared = any(a.untyped_storage().data_ptr() == storage.data_ptr() for a in owners)
    return tensor.nbytes if shared else storage.nbytes()


def _needed_bytes(tensor: Tensor) -> int:
    """A tensor of zeros and ones, and of both, is a mask, and a mask needs a byte an element."""
    plain = tensor.detach()
    ones, zeros = plain == 1, plain == 0
    mask = plain.is_floating_point() and bool((ones | zeros).all()) and bool(ones.any()) and bool(zeros.any())
    return plain.numel() if mask else plain.nbytes

"""a Python loop goes through a tensor element by element, or row by row

What it finds
-------------
In forward or backward: `for i in range(x.shape[0])` whose body indexes tensors with `i`, or `for row in x`, where no
iteration needs the result of the one before. Loops with a literal bound of at most 8, loops that launch kernels and
recurrences (a state is carried on) are left alone.

Why it matters
--------------
Each indexed operation costs a few microseconds whatever its size, so a loop over n rows takes n times as long as the one
operation that does all rows. Measured on torch 2.13: `out[i] = x[i] * w[i]` over 1,000 rows of 64 takes 7.6 ms, `x * w`
0.013 ms.

Known problems
--------------
Rows of different lengths may have no single operation. This is information until it is measured.

References
----------
Measured on torch 2.13, one thread: see above.
https://docs.pytorch.org/docs/stable/notes/broadcasting.html
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.loops import carried, loops_of
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.profiling.events import Event
    from gradsmith.profiling.flow import LoopUse
    from gradsmith.source import FunctionModel, Loop

CODE = "GS503"
SEVERITY = "info"
EXPLAINS = (
    "slower-than-autograd",
    "host-sync",
    "superlinear-backward",
    "needless-copy",
    "loop-invariant",
    "call-overhead",
)
# What goes wrong on the lines of a loop that need not be one.
INSIDE = frozenset(
    {"time-index", "slot-write", "cat-in-loop", "host-sync", "superlinear-backward", "loop-invariant", "needless-copy"}
)
FIXABLE = False
BAD = """
import torch


class RowScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * scale[i]
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale.unsqueeze(1), (grad_output * x).sum(1)


gradsmith_inputs = {
    "RowScale": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, dtype=torch.float64, requires_grad=True),
    )
}
"""
GOOD = """
import torch


class RowScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale.unsqueeze(1), (grad_output * x).sum(1)


gradsmith_inputs = {
    "RowScale": lambda: (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(4, dtype=torch.float64, requires_grad=True),
    )
}
"""
_FEW = 8


def lint(function: FunctionModel) -> Iterator[Finding]:
    methods = [m for m in (*function.before, function.backward) if m is not None and not m.inherited]
    for method in methods:
        reported: set[ast.AST] = set()
        for loop in loops_of(method):
            if reported & set(method.ancestors(loop.node)):
                continue
            if not isinstance(loop.node, ast.For) or method.in_nested_function(loop.node) or _is_short(loop):
                continue
            over = _rows(loop)
            if over is None or carried(loop) or _launches(loop):
                continue
            reported.add(loop.node)
            yield function.at(
                loop.node.iter,
                f"{function.name}.{method.name} loops over '{over}' in Python, one operation per element or row.",
                advice="Write one operation on the whole tensor: broadcasting, einsum, gather, index_add or bmm.",
                argument=over,
            )


def _is_short(loop: Loop) -> bool:
    length = loop.method.resolve(loop.length) if loop.length is not None else None
    return isinstance(length, ast.Constant) and isinstance(length.value, int) and length.value <= _FEW


def _rows(loop: Loop) -> str | None:
    """The tensor whose rows this loop visits."""
    method = loop.method
    if loop.iterated is not None and isinstance(loop.iterated, ast.Name):
        return loop.iterated.id if method.value(loop.iterated).is_tensor else None
    for node in loop.subscripts():
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        plain = any(isinstance(i, ast.Name) and i.id == loop.index for i in indices)
        if plain and isinstance(node.value, ast.Name) and method.value(node.value).is_tensor:
            return node.value.id
    return None


def _launches(loop: Loop) -> bool:
    inside = {id(n) for s in loop.node.body for n in nodes_under(s)}
    return any(id(c.node) in inside and (c.is_opaque or (c.op is None and c.dotted is None)) for c in loop.method.calls)


_ITERATIONS = 4
_GAIN = 1.15
_CHUNK = 1 << 18  # bytes per iteration from which on a loop may be there to bound memory


def profile(profile: Profile) -> Iterator[Finding]:
    found: list[_Slow] = []
    for use in profile.loops:
        if use.recurrent or use.iterations < _ITERATIONS or len(use.work) < use.iterations:
            continue
        if any(outer.use.loop in event.iterations for event in use.events[:1] for outer in found):
            continue  # the outer loop is the one to name
        dimension = profile.grows_with(use.loop)
        sized = any(word in use.loop.over for word in (".shape", ".size(", ".numel("))
        if dimension is None and not sized and not _slices(use):
            continue
        found.append(_Slow(use, profile.with_backward([*use.events, *_gathers(profile, use)]), dimension))
    # Whoever vectorises forward vectorises backward as well: what one of them gains alone is not what the remedy gains.
    phases = {slow.use.phase for slow in found}
    for slow in [found] if len(phases) > 1 else [[one] for one in found]:
        yield from _named(profile, slow)


@dataclass(frozen=True)
class _Slow:
    """A loop that could be one operation, and all that goes with it."""

    use: LoopUse
    events: list[Event]
    dimension: str | None


def _named(profile: Profile, loops: list[_Slow]) -> Iterator[Finding]:
    """One finding for loops that one remedy mends, at the one that takes longest."""
    events = list({e.index: e for slow in loops for e in slow.events}.values())
    gain = profile.gain(profile.seconds(events), profile.together(events))
    moved = sum(e.read_bytes + e.written_bytes for slow in loops for e in slow.use.work)
    if gain.low < _GAIN and moved > _CHUNK * sum(slow.use.iterations for slow in loops):
        return  # nobody gives up a bound on memory for a gain that is not certain
    first, *others = sorted(loops, key=lambda slow: -profile.seconds(slow.events))
    use, share = first.use, profile.share(events)
    per = round(len(use.work) / use.iterations)
    site = next(s for e in use.events for s in e.sites if use.loop in s.loops)
    over = first.dimension or use.loop.over
    places = [f"{slow.use.phase} at line {slow.use.loop.line}" for slow in others]
    also = f", with {' and '.join(places)}" if places else ""
    yield profile.at_loop(
        use.loop,
        site,
        f"{use.phase} launches {'one op' if per == 1 else f'{per} ops'} per iteration at "
        f"{profile.place(replace(site, line=use.loop.line))}: a Python loop over {over} ({use.iterations} iterations{also}, "
        f"{share:.0%} of the run time); vectorise it.",
        advice=f"Do all of `{use.loop.over}` in one operation (broadcasting, einsum, index ops)"
        + (", in forward and in backward." if places else "."),
        share=share,
        gain=gain,
        severity=None if gain >= _GAIN else "info",
        evidence={
            "ops": sum(len(slow.use.work) for slow in loops),
            "iterations": use.iterations,
            "dimension": first.dimension,
            "loops": [[slow.use.loop.line, slow.use.loop.end[0]] for slow in (first, *others)],
        },
    )


def _slices(use: LoopUse) -> bool:
    """Every iteration takes its own part, of the same shape, out of the same tensor (heads, groups, channels).

    Where it was cut into parts before the loop (`for xi, wi in zip(x, w)`), the parts show by their offsets. That is not to be
    had from growth: zip ends with the shorter, so neither tensor alone makes the loop longer.
    """
    parts: dict[tuple[int, tuple[int, ...]], set[int]] = defaultdict(set)
    for event in use.events:
        if event.is_view and event.reads and event.outputs:
            part = event.outputs[0]
            if part.bytes < event.reads[0].bytes:
                parts[part.storage, part.shape].add(part.offset)
        for read in event.reads if not event.is_view else ():
            parts[read.storage, read.shape].add(read.offset)
    return any(len(offsets) >= use.iterations for offsets in parts.values())


def _gathers(profile: Profile, use: LoopUse) -> list[Event]:
    """The stack or cat that puts the iterations together again; it goes with the loop."""
    written = {storage for e in use.events for storage in e.fresh}
    joins = [e for e in profile.recording.events if e.op in ("stack", "cat") and e.phase == use.phase]
    return [e for e in joins if e.reads and all(a.storage in written for a in e.reads)]


def absorbs(loop: Finding, other: Finding) -> bool:
    """Whether it stands on the loop's lines and promises no more: whoever vectorises the loop has mended it."""
    if other.rule not in INSIDE or loop.severity != "warning":
        return False
    if other.path != loop.path or other.line is None or loop.line is None:
        return False
    alone = [[loop.line, loop.evidence.get("last_line", loop.line)]]
    within = any(begin <= other.line <= end for begin, end in loop.evidence.get("loops", alone))
    return within and _gain(other) <= _gain(loop)


def _gain(finding: Finding) -> float:
    return float(finding.evidence.get("predicted_gain", 1.0))

"""a loop over time picks each step with `x[t]`, whose backward fills a whole sequence per step

What it finds
-------------
`for t in range(T)` in an nn.Module whose body reads `x[t]`, `x[:, t]` or `x[:, t, :]` of a tensor that the loop does not
change.

Why it matters
--------------
The gradient of `x[t]` is a tensor as large as x, zero but for one step, made anew and added for every step: backward
costs T times T. `x.unbind(0)` returns all steps at once and puts their gradients together once. Measured on torch 2.13, one
thread: T = 2048, 585 ms with `x[t]` and 97 ms with unbind; a linear recurrence with T = 4096: 1757 ms and 94 ms.

Known problems
--------------
Where x is data that needs no gradient the index costs nothing: this is a warning only where x is surely part of the
graph (it came out of one of the layer's own modules or products), and information elsewhere.

References
----------
Measured on torch 2.13: see above (benchmarks of the recurrent engine).
https://docs.pytorch.org/docs/stable/generated/torch.unbind.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Edit, Finding
from gradsmith.source import knowledge as know
from gradsmith.source.loops import body_nodes
from gradsmith.source.steps import (
    TimeIndex,
    engine_offer,
    is_forward,
    is_recurrent,
    is_tracked,
    time_indices,
    time_loops,
)

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.profiling.events import Event
    from gradsmith.source import LayerModel, Loop

CODE = "GS701"
SEVERITY = "warning"
EXPLAINS = ("superlinear-backward",)
FIXABLE = True
BAD = """
import torch
from torch import nn


class Leaky(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.project = nn.Linear(size, size)

    def forward(self, x):
        drive = self.project(x)
        state = torch.zeros_like(drive[0])
        states = []
        for t in range(x.shape[0]):
            state = 0.9 * state + torch.relu(drive[t] - state)
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Leaky": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch import nn


class Leaky(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.project = nn.Linear(size, size)

    def forward(self, x):
        drive = self.project(x)
        state = torch.zeros_like(drive[0])
        states = []
        for now in drive.unbind(0):
            state = 0.9 * state + torch.relu(now - state)
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Leaky": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for loop in time_loops(layer):
        by_name: dict[tuple[str, int], list[TimeIndex]] = {}
        for found in time_indices(loop):
            by_name.setdefault((found.name, found.dimension), []).append(found)
        for (name, dimension), places in by_name.items():
            first = places[0].node
            assert isinstance(first.value, ast.Name)
            tracked = is_tracked(layer, loop.method, first.value)
            if not tracked and not is_recurrent(loop):
                continue  # a loop over the samples of a batch, as likely as not of data
            yield layer.at(
                first,
                f"{layer.name}.{loop.method.name} reads '{ast.unparse(first)}' in a loop: its backward fills a tensor "
                f"as large as '{name}' at every step.",
                advice=f"Take all steps at once, `for step in {name}.unbind({dimension})`, or `{name}_steps = "
                f"{name}.unbind({dimension})` before the loop.{engine_offer(layer, loop, dimension)}",
                argument=name,
                severity=None if tracked and is_forward(loop.method) else "info",
                edits=_unbound(loop, name, dimension, places),
            )


def _unbound(loop: Loop, name: str, dimension: int, places: list[TimeIndex]) -> list[Edit | None]:
    """`x_steps = x.unbind(0)` before the loop, `x_steps[t]` in it. Nothing where the body writes into a step."""
    from gradsmith.source.edits import insert_before, replace

    steps, file = f"{name}_steps", loop.method.file
    taken = {n.id for n in loop.method.of(ast.Name)}
    inside = {id(n) for n in body_nodes(loop)}
    written = any(id(w.node) in inside and name in ast.unparse(w.target) for w in loop.method.writes)
    nested = any(isinstance(a, (ast.For, ast.While)) for a in loop.method.ancestors(loop.node))
    if steps in taken or written or nested:
        return []
    return [
        insert_before(file, loop.node, f"{steps} = {name}.unbind({dimension})"),
        *(replace(file, p.node, f"{steps}[{loop.index}]") for p in places),
    ]


_NODES = ("SelectBackward", "SliceBackward", "IndexBackward", "IndexSelectBackward")


def profile(profile: Profile) -> Iterator[Finding]:
    events = profile.recording.events
    cuts = [e for e in events if e.phase == "forward" and e.op in know.CUTS and e.iterations and _takes_a_part(e)]
    for site in dict.fromkeys(e.site for e in cuts if e.site is not None):
        mine = [e for e in cuts if e.site == site]
        back = [e for e in profile.with_backward(mine) if e.phase == "backward" and e.node.startswith(_NODES)]
        whole = [e for e in back if e.op.endswith("_backward") or e.op in ("zeros", "new_zeros", "index_put_")]
        taking = {e.parent for e in whole}
        mine = [e for e in mine if e.index in taking]  # what takes no gradient is filled by nobody
        if not mine:
            continue
        base, part = max(e.reads[0].bytes for e in mine), max(e.outputs[0].bytes for e in mine)
        if len(whole) < 4 or base < 4 * part or sum(e.written_bytes for e in whole) < 4 * base:
            continue
        share = profile.share(back)
        name = profile.recording.inputs.get(mine[0].reads[0].storage, "the tensor")
        yield profile.finding(
            site,
            f"backward fills a tensor of shape {mine[0].reads[0].shape} {len(whole)} times, once for every step that indexes "
            f"{name} at {profile.place(site)} ({share:.0%} of the run time).",
            advice=_apart(name, mine),
            share=share,
            gain=profile.gain(profile.seconds(back), _unbind(profile, base, len(whole))),
            evidence={"steps": len(whole), "bytes": sum(e.written_bytes for e in back)},
        )


def _takes_a_part(cut: Event) -> bool:
    """Not a slice that keeps everything, as torch 2.6 makes of the colon in `x[:, t]`."""
    return bool(cut.reads and cut.outputs) and cut.outputs[0].bytes < cut.reads[0].bytes


def _apart(name: str, cuts: Sequence[Event]) -> str:
    """What to write, along the dimension that the loop really walks through."""
    from gradsmith.profiling.events import cut_dimension

    along = cut_dimension(cuts)
    x = name.strip("'") if name.strip("'").isidentifier() else "x"
    where = "`, along the dimension of the steps" if along is None else f".unbind({along}):`"
    scanned = x if along == 0 else f"{x}.transpose(0, {along})"
    offer = "" if along is None else f" Or let `gs.scan(step, {scanned}, state)` run the loop; --try measures it."
    return f"Take the steps apart once, before the loop: `for {x}_t in {x}{where}.{offer}"


def _unbind(profile: Profile, base: int, steps: int) -> float:
    """Seconds of the remedy's backward: one stack of all steps."""
    return profile.machine.seconds(2 * base) + 0.2 * steps * profile.machine.op_s

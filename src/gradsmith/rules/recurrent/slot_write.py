"""each step is written into a slot of a preallocated result, under autograd

What it finds
-------------
`out[t] = h` or `out[:, t] = h` in a loop over time of an nn.Module, where `out` was made by `torch.zeros`, `torch.empty` or
the like.

Why it matters
--------------
Under autograd every such write adds a copy to the graph, and backward goes through the whole of `out` once per step.
Measured on torch 2.13, one thread, T = 256: 47 ms, against 26 ms with a list and one `torch.stack`.

Known problems
--------------
Without gradients a preallocated result is the better choice, and inside a custom Function too: only nn.Modules are
looked at, and loops under `torch.no_grad()` are left alone.

References
----------
Measured on torch 2.13: see above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.knowledge import CREATION
from gradsmith.source.lexicon import is_a
from gradsmith.source.loops import carried, depends_on
from gradsmith.source.steps import time_loops

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.source import LayerModel

CODE = "GS704"
SEVERITY = "info"
EXPLAINS = ("superlinear-backward", "element-loop")
FIXABLE = False
BAD = """
import torch
from torch import nn


class Smooth(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[0])
        out = torch.empty_like(x)
        for t, now in enumerate(x.unbind(0)):
            state = 0.9 * state + 0.1 * torch.tanh(now)
            out[t] = state
        return out


gradsmith_inputs = {"Smooth": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch import nn


class Smooth(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[0])
        out = []
        for now in x.unbind(0):
            state = 0.9 * state + 0.1 * torch.tanh(now)
            out.append(state)
        return torch.stack(out)


gradsmith_inputs = {"Smooth": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for loop in time_loops(layer):
        for node in loop.subscripts():
            if not isinstance(node.ctx, ast.Store) or not isinstance(node.value, ast.Name):
                continue
            name, statement = node.value, loop.method.statement(node)
            # The stored-to name is itself a load: `out[t] = h` reads `out`.
            if loop.method.op(loop.method.resolve(name)) not in CREATION or is_a(name.id, "integer"):
                continue
            if isinstance(statement, ast.Assign) and depends_on(loop, statement.value, carried(loop) - {name.id}):
                yield layer.at(
                    node,
                    f"{layer.name}.{loop.method.name} writes each step into '{name.id}': in backward, autograd copies the whole "
                    f"of '{name.id}' once per step.",
                    advice=f"Append the steps to a list and write `{name.id} = torch.stack(steps)` after the loop.",
                    argument=name.id,
                )


def profile(profile: Profile) -> Iterator[Finding]:
    events = profile.recording.events
    slots = [
        e
        for e in events
        if e.phase == "backward" and e.node.endswith("CopySlices") and e.iterations and e.site is not None
    ]
    for place in dict.fromkeys((e.site.path, e.site.line) for e in slots if e.site is not None):
        mine = [e for e in slots if e.site is not None and (e.site.path, e.site.line) == place]
        steps = len({tuple(e.iterations.values()) for e in mine})
        if steps < 4:
            continue
        largest = max((e.written_bytes for e in mine), default=0)
        share = profile.share(mine)
        yield profile.finding(
            mine[0].site,
            f"backward copies the gradient of the whole tensor ({largest:,} bytes) for each of {steps} writes into a slot of "
            f"it at {profile.place(mine[0].site)} ({share:.0%} of the run time).",
            advice="Append to a list and call torch.stack once, after the loop.",
            share=share,
            gain=profile.gain(profile.seconds(mine), 2 * profile.machine.seconds(2 * largest) + profile.machine.op_s),
            evidence={"steps": steps, "bytes": sum(e.written_bytes for e in mine)},
        )

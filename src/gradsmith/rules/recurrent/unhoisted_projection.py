"""a projection of the input is computed step by step, though all steps are known beforehand

What it finds
-------------
`self.w(x[t])` in a loop over time, where `self.w` is an nn.Linear and its argument does not depend on the state.

Why it matters
--------------
One product of the whole sequence uses the processor far better than T small ones, and its backward is one product too.
Measured on torch 2.13, T = 256: 26 ms as written, 17 ms with the projection before the loop and `unbind` inside it
(nn.RNN: 18 ms).

Known problems
--------------
Hoisted but still indexed with `[t]` it gets slower (47 ms): the projected sequence must be unbound. It needs memory for
the projected sequence at once.

References
----------
Measured on torch 2.13, one thread: see above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.loops import body_nodes
from gradsmith.source.projections import projected
from gradsmith.source.steps import engine_offer, is_recurrent, step_input, time_indices, time_loops
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.profiling.events import Event
    from gradsmith.profiling.flow import LoopUse
    from gradsmith.source import LayerModel, Loop

CODE = "GS702"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.w = nn.Linear(size, size)
        self.u = nn.Linear(size, size)

    def forward(self, x):
        state = torch.zeros_like(x[0])
        states = []
        for now in x.unbind(0):
            gate = torch.sigmoid(self.w(now) + self.u(state))
            state = gate * state + (1 - gate) * now
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Gated": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.w = nn.Linear(size, size)
        self.u = nn.Linear(size, size)

    def forward(self, x):
        state = torch.zeros_like(x[0])
        states = []
        for now, drive in zip(x.unbind(0), self.w(x).unbind(0)):
            gate = torch.sigmoid(drive + self.u(state))
            state = gate * state + (1 - gate) * now
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Gated": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for loop in time_loops(layer):
        for node in body_nodes(loop):
            step = projected(layer, loop.method, node) if isinstance(node, (ast.Call, ast.BinOp)) else None
            if step is None or not is_recurrent(loop) or not _is_plain_step(loop, step):
                continue
            written = ast.unparse(node).replace(ast.unparse(step), "x", 1)
            whole = f"({written})" if isinstance(node, ast.BinOp) else written
            yield layer.at(
                node,
                f"{layer.name}.{loop.method.name} computes `{ast.unparse(node)}` once per step, though it does not depend on the "
                "state.",
                advice=f"Project the whole sequence before the loop and unbind the result: `for drive in {whole}.unbind({_dimension(loop, step)})`."
                + engine_offer(layer, loop, _dimension(loop, step)),
            )


def _dimension(loop: Loop, step: ast.expr) -> int:
    """Which dimension of the sequence is time."""
    step = loop.method.resolve(step)
    return next((found.dimension for found in time_indices(loop) if found.node is step), 0)


def _is_plain_step(loop: Loop, node: ast.expr) -> bool:
    """`x[t]`, the loop's variable over a sequence, or a name that is one of them."""
    node = loop.method.resolve(node)
    if isinstance(node, ast.Subscript):
        return any(found.node is node for found in time_indices(loop))
    target = loop.node.target if isinstance(loop.node, ast.For) else None
    names = {n.id for n in nodes_under(target) if isinstance(n, ast.Name)} if target is not None else set()
    return isinstance(node, ast.Name) and node.id in names and node.id != loop.index and step_input(loop, node)


_STEPS = 4


def profile(profile: Profile) -> Iterator[Finding]:
    from gradsmith.source.knowledge import MATRIX_OPERATORS

    for use in profile.loops:
        if not use.recurrent or use.iterations < _STEPS:
            continue
        invariant = {e.index for e in use.invariant}
        products = [e for e in use.hoistable if e.op in MATRIX_OPERATORS and e.index not in invariant]
        for site in dict.fromkeys(e.sites for e in products):
            mine = [e for e in products if e.sites == site]
            if len(mine) < use.iterations - 1:
                continue
            events = profile.with_backward(mine)
            cost = profile.seconds(events) * use.iterations / max(1, use.iterations - 1)
            share = cost / profile.total_s if profile.total_s else 0.0
            place = next((s for s in site if use.loop in s.loops), site[0])
            cell = mine[0].built_in if mine[0].built_in.endswith("Cell") else ""
            yield profile.finding(
                place,
                f"{f'nn.{cell} projects its input step by step: a' if cell else 'a'} `{mine[0].op}` that does not depend on the state runs at {profile.place(place)} in each of the {use.iterations} steps "
                f"({share:.0%} of the run time).",
                advice=_for_cell(cell)
                if cell
                else f"Project all steps at once before the loop, then loop over `projected{_steps_of(use, mine)}`. Or let "
                "`gs.Recurrent(cell)` or `gs.scan` run the loop, which project all steps at once (--try measures it).",
                share=share,
                gain=profile.gain(cost, profile.together(events)),
                evidence={
                    "steps": use.iterations,
                    "flops": sum(e.flops for e in mine),
                    **({"cell": cell} if cell else {}),
                },
            )


def _steps_of(use: LoopUse, products: list[Event]) -> str:
    """`.unbind(1)`: along the dimension in which what the products read was cut out of the sequence; empty where that is not known."""
    from gradsmith.profiling.events import cut_dimension

    read = {(a.storage, a.offset) for e in products for a in e.reads}
    cuts = [e for e in use.events if e.is_view and e.outputs and (e.outputs[0].storage, e.outputs[0].offset) in read]
    walked = [e for e in cuts if e.reads and len(e.reads[0].shape) > len(e.outputs[0].shape)]
    along = cut_dimension(walked)
    return "" if along is None else f".unbind({along})"


def _for_cell(cell: str) -> str:
    """The lines inside torch's own cell are not the user's to change; the layers that run whole sequences are."""
    layer = cell.removesuffix("Cell")
    return (
        f"Use nn.{layer}, which projects the whole sequence at once, where nothing happens between the steps; otherwise "
        f"`gs.Recurrent(cell)`, which runs any cell over a sequence."
    )

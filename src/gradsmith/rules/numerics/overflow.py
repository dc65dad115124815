"""Large inputs overflow inside, and the gradient becomes NaN.

What it finds
-------------
The gradient is NaN at a finite input whose size is ten or more, while the output is finite or plainly infinite: something
overflowed on the way. Beside the given inputs, single elements of 1000 and -1000 are tried.

Why it matters
--------------
exp(x) / (1 + exp(x)) is a sigmoid until x is 710 (89 in float32); then it is inf / inf. One such element
turns every weight into NaN at the next optimizer step.

Known problems
--------------
For values that the example does not have, this is a warning, or `info` where autograd through the same forward is NaN, too.

References
----------
https://github.com/pytorch/pytorch/issues/2421, https://github.com/open-mmlab/mmrotate/issues/205
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, Severity

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS312"
SEVERITY = "error"
DEMONSTRATION = "float16"
LEVEL = "standard"
EXPLAINS = ("nonfinite-gradient",)
BAD = """
import torch


class Logistic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.exp(x) / (1 + torch.exp(x)) ** 2


gradsmith_inputs = {"Logistic": lambda: (torch.tensor([1.0, 800.0], dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("torch.exp(x) / (1 + torch.exp(x)) ** 2", "torch.sigmoid(x) * torch.sigmoid(-x)")


def probe(lab: Lab) -> Iterator[Finding]:
    import torch

    base = lab.baseline
    outputs = [o for o in base.run.outputs if o.is_floating_point()]
    defined = not any(bool(o.isnan().any()) for o in outputs)
    for leaf in base.run.arguments.differentiable:
        grad = base.gradients[leaf.position]
        if grad is None or not defined or leaf.tensor.is_complex():
            continue
        hit = grad.isnan() & (leaf.tensor.detach().abs() >= 10) & torch.isfinite(leaf.tensor.detach())
        if bool(hit.any()):
            element = tuple(int(i) for i in torch.nonzero(hit)[0])
            yield _finding(lab, leaf.name, element, float(leaf.tensor.detach()[element]), "error")
            return
    yield from _elsewhere(lab)


def _elsewhere(lab: Lab) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.lab.explore.edges import edges
    from gradsmith.lab.explore.trial import worth_exploring
    from gradsmith.lab.snippet import demonstration

    finite = all(g is None or bool(g.isfinite().all()) for g in lab.baseline.gradients.values())
    if not finite or not worth_exploring(lab):
        return
    for edge in edges(lab, ("large",)):
        value = float(edge.leaf.tensor.detach()[edge.element])
        found = _finding(lab, edge.leaf.name, edge.element, value, "warning" if edge.needless else "info")
        yield replace(found, reproduce=demonstration(lab, edge.arguments, "finite"))
        return


def _finding(lab: Lab, name: str, element: tuple[int, ...], value: float, severity: Severity) -> Finding:
    step = _step(lab, name, value)
    whose = "your inputs" if severity == "error" else "inputs that gradsmith tried"
    return lab.finding(
        f"{lab.target.name}.backward returns NaN where {name}{list(element)} is {value:.6g} (in {whose}): "
        f"{step or 'a step of the computation'} overflows to infinity.",
        argument=name,
        severity=severity,
        advice="Rewrite this gradient so that no step overflows. For example: torch.sigmoid(x) instead of exp(x) / (1 + exp(x)) "
        "or 1 / (1 + exp(-x)), torch.sigmoid(x) * torch.sigmoid(-x) instead of exp(x) / (1 + exp(x)) ** 2, torch.logsumexp instead "
        "of log(sum(exp(x))), F.softplus instead of log(1 + exp(x)).",
        at="gradient",
        evidence={"element": list(element), "input": value},
    )


def _step(lab: Lab, name: str, value: float) -> str:
    """The operation on this very input that is infinite there, as the source of backward spells it; empty where none is plain to see."""
    import torch

    from gradsmith.source import knowledge as know
    from gradsmith.source.loaded import model_of

    model = model_of(lab.target.function) if lab.target.function is not None else None
    backward = model.backward if model is not None else None
    leaf = next((x for x in lab.arguments.leaves if x.name == name), None)
    if backward is None or leaf is None:
        return ""
    at = torch.tensor(value, dtype=leaf.tensor.dtype)
    for call in backward.calls:
        read = {n.id for n in ast.walk(call.node) if isinstance(n, ast.Name)} - {"torch", "F", "math"}
        plain = [
            a
            for a in (*call.node.args, getattr(call.node.func, "value", None))
            if isinstance(a, (ast.Name, ast.UnaryOp))
        ]
        if call.op not in know.GROWING or read != {name} or not plain:
            continue
        sign = -1 if any(isinstance(a, ast.UnaryOp) for a in plain) else 1
        if bool(torch.isinf(getattr(torch, call.op)(sign * at))):
            return f"`{ast.unparse(call.node)}`"
    return ""

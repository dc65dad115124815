"""A hand-written wrapper of foreign code takes finite differences of unknown quality.

What it finds
-------------
A Function whose forward leaves torch for NumPy, and whose backward divides a difference of two calls of one function by a step.
Running it, the step's error is measured, and compared with what `gs.wrap` would reach at the same inputs.

Why it matters
--------------
The step decides everything: too long, and the curve is cut off; too short, and rounding is divided by almost nothing. Neither
raises. A step that suits float64 and inputs near 1 is wrong for float32, for noise, and for inputs near 1e6.

Known problems
--------------
Only differences that stand in backward itself are seen, not those of a helper that backward calls. A class that declares
`# gradsmith: approximate` is not reported by lint: its error is measured by check and is documented.

References
----------
Measured on torch 2.13, exp(sin x) in float32: one-sided differences with a step of 1e-2 are off by 6e-3 of the gradient, with 1e-7 by
two thirds of it; central differences with 1e-3 by 4e-5.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab, Pair
    from gradsmith.source import FunctionModel, Method

CODE = "GS331"
SEVERITY = "warning"
EXPLAINS = ("wrong-gradient", "approximate-error", "undeclared-surrogate")
BAD = """
import numpy as np
import torch
from torch.autograd.function import once_differentiable


def simulate(x):
    return np.exp(np.sin(x))


class Simulation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(simulate(x.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0].detach().numpy()
        step = 0.1
        slope = (simulate(x + step) - simulate(x)) / step
        return grad_output * torch.from_numpy(slope)


gradsmith_inputs = {"Simulation": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = (
    BAD.replace("Function):", "Function):  # gradsmith: approximate")
    .replace("step = 0.1", "step = 6e-6")
    .replace("(simulate(x + step) - simulate(x)) / step", "(simulate(x + step) - simulate(x - step)) / (2 * step)")
)


@dataclass(frozen=True)
class _Difference:
    """A difference quotient in backward: where it stands, the function, its step if that is a number, and its kind."""

    node: ast.BinOp
    function: str
    step: float | None
    central: bool

    def __str__(self) -> str:
        kind = "central" if self.central else "one-sided"
        return f"takes {kind} differences of {self.function}" + (f" with step {self.step:g}" if self.step else "")


def lint(function: FunctionModel) -> Iterator[Finding]:
    found = _difference(function)
    if found is None or function.declaration is not None:
        return
    yield function.at(
        found.node,
        f"{function.name}.backward {found}, and nobody knows how far off the gradient is.",
        advice=f"Write `gs.wrap({found.function})`: it measures the noise, chooses the steps, and states the error. Or declare "
        "`# gradsmith: approximate` at the class, and let `gradsmith check` measure it.",
    )


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.diagnosis.truth import approximation_error
    from gradsmith.source import model_of

    model = model_of(lab.target.function) if lab.target.function is not None else None
    found = _difference(model) if model is not None else None
    if found is None:
        return
    for pair in lab.gradient.pairs:
        error = approximation_error(lab, pair)
        if error is None:
            continue
        step, reached = _by_wrap(lab, pair)
        severity: Any = "error" if error.relative >= 1e-2 else "warning" if error.relative >= 1e-3 else "info"
        yield lab.finding(
            f"{lab.target.name}.backward {found}: the gradient of '{pair.leaf.name}' is off by {error.relative:.2g} of its size. "
            f"`gs.wrap` would use step {step:.1g} and be off by {reached:.1g}.",
            argument=pair.leaf.name,
            severity=severity,
            advice=f"Write `gs.wrap({found.function})` instead of the class, or take central differences with step {step:.1g}.",
            evidence={"relative": error.relative, "step": found.step, "wrap_step": step, "wrap_relative": reached},
            line=found.node.lineno,
        )


def _by_wrap(lab: Lab, pair: Pair) -> tuple[float, float]:
    """(step, relative error) of the central differences that `gs.wrap` would take along a random direction."""
    import numpy as np
    import torch

    from gradsmith.external import ladder
    from gradsmith.lab.measure.differences import dot
    from gradsmith.lab.measure.gradient import moved, typical_size

    x = pair.leaf.tensor.detach()

    def phi(moves: Any) -> Any:
        rows = []
        for move in moves:
            along = torch.from_numpy(np.asarray(move)).to(x.dtype)
            rows.append([dot(pair.v, moved(*lab.precise, pair.leaf, along, lab.settings)(1.0)[pair.output])])
        return np.array(rows)

    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=tuple(x.shape))
    direction = signs * typical_size(x)
    base = phi([np.zeros(tuple(x.shape))])[0]
    (slope,) = ladder.slopes(phi, [direction], [1.0], base, np.abs(base))
    step, error, _ = ladder.error_at(slope, "central", phi, direction, base)
    return step * typical_size(x), float(error[0] / max(abs(float(slope.value[0])), 1e-300))


def _difference(function: FunctionModel) -> _Difference | None:
    """The first difference quotient in the backward of a Function whose forward leaves torch for NumPy."""
    forward, backward = function.forward, function.backward
    if forward is None or backward is None or function.kind != "function":
        return None
    if not any(call.is_numpy for call in forward.calls):
        return None
    for node in backward.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            over = backward.resolve(node.left)
            called = _same_call(backward, over) if isinstance(over, ast.BinOp) else None
            if called is not None:
                number = _number(backward, node.right)
                central = _has_factor_two(backward, node.right)
                step = number / 2 if number is not None and central else number
                return _Difference(node, called, step, central)
    return None


def _same_call(method: Method, difference: ast.BinOp) -> str | None:
    """`f` where both sides of a minus are calls of f, perhaps inside a product."""
    if not isinstance(difference.op, ast.Sub):
        return None
    names = [{ast.unparse(c.func) for c in _calls(method, side)} for side in (difference.left, difference.right)]
    both = names[0] & names[1]
    return min(both) if both else None


def _calls(method: Method, node: ast.expr) -> list[ast.Call]:
    node = method.resolve(node)
    if isinstance(node, ast.Call):
        inside = node.func.value if isinstance(node.func, ast.Attribute) else None  # `f(x).sum()` is a call of f
        return [node] if not isinstance(inside, ast.Call) else [node, *_calls(method, inside)]
    return []


def _number(method: Method, node: ast.expr) -> float | None:
    """The value of a number, or of a product of numbers, that stands in the source."""
    node = method.resolve(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(method, node.left), _number(method, node.right)
        return left * right if left is not None and right is not None else None
    return None


def _has_factor_two(method: Method, node: ast.expr) -> bool:
    node = method.resolve(node)
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    return any(_number(method, side) == 2 for side in (node.left, node.right))

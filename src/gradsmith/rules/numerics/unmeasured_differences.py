"""A hand-written wrapper of foreign code takes finite differences of unknown quality.

What it finds
-------------
A Function whose forward leaves torch, and whose backward divides a difference of two calls of one function by a step: in its own
body, in a function or method of its file that it calls, or by a library (`scipy.optimize.approx_fprime`, `numdifftools`).
Running it, the step is measured at the calls that backward makes, wherever they stand. The error is measured, too, and compared
with what `gs.wrap` would reach at the same inputs.

Why it matters
--------------
The step decides everything: too long, and the curve is cut off; too short, and rounding is divided by almost nothing. Neither
raises. A step that suits float64 and inputs near 1 is wrong for float32, for noise, and for inputs near 1e6.

Known problems
--------------
Lint does not follow helpers into other files, and knows those of libraries by their names. Running it, calls of C functions and
of other processes are not seen, nor points that are stacked into one call; then the step is the one that the source names. A
class that declares `# gradsmith: approximate` is not reported by lint: its error is measured by check and is documented.

References
----------
Measured on torch 2.13, exp(sin x) in float32: one-sided differences with a step of 1e-2 are off by 6e-3 of the gradient, with 1e-7 by
two thirds of it; central differences with 1e-3 by 4e-5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab, Pair
    from gradsmith.source import FunctionModel

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


def lint(function: FunctionModel) -> Iterator[Finding]:
    from gradsmith.source.differences import in_backward

    found = in_backward(function) if function.declaration is None else None
    if found is None:
        return
    taken = _sentence(found.function, found.central, found.step, found.through)
    yield function.at(
        found.at,
        f"{function.name}.backward {taken}: the gradient has an error, and this class does not measure it.",
        advice=f"Delete the class, write `wrapped = gradsmith.wrap({found.function})` once, and call `wrapped(...)` instead of "
        f"`{function.name}.apply(...)`: wrap chooses the step and measures the error. To keep the class, write `# gradsmith: approximate` at the end of the class line; `gradsmith check` then measures the error.",
    )


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.diagnosis.truth import approximation_error
    from gradsmith.lab.explore.moves.option_values import source_of
    from gradsmith.lab.explore.reevaluated import reevaluated
    from gradsmith.source import FunctionModel
    from gradsmith.source.differences import in_backward

    model = source_of(lab.target)
    written, seen = in_backward(model) if isinstance(model, FunctionModel) else None, reevaluated(lab)
    if written is None and (seen is None or not seen.certain):
        return
    name = written.function if written is not None else seen.function if seen is not None else ""
    central, step = (seen.central, seen.step) if seen is not None else (None, None)
    if seen is None and written is not None:
        central, step = written.central, written.step
    taken = _sentence(name, central, step, written.through if written is not None else "")
    line = getattr(written.at, "lineno", None) if written is not None else seen.line if seen is not None else None
    for pair in lab.gradient.pairs:
        error = approximation_error(lab, pair)
        if error is None:
            continue
        wanted, reached = _by_wrap(lab, pair)
        severity: Any = "error" if error.relative >= 1e-2 else "warning" if error.relative >= 1e-3 else "info"
        yield lab.finding(
            f"{lab.target.name}.backward {taken}: the gradient of '{pair.leaf.name}' is off by {error.relative:.2g} times its norm. "
            f"gradsmith.wrap would use step {wanted:.1g} and be off by {reached:.1g}.",
            argument=pair.leaf.name,
            severity=severity,
            advice=f"Write `gradsmith.wrap({name})` instead of the class, or take central differences with step {wanted:.1g}.",
            evidence={"relative": error.relative, "step": step, "wrap_step": wanted, "wrap_relative": reached},
            line=line,
        )


def _sentence(function: str, central: bool | None, step: float | None, through: str) -> str:
    kind = "finite " if central is None else "central finite " if central else "one-sided finite "
    by = f" by {through}" if through else ""
    return f"takes {kind}differences of {function}{by}" + (f" with step {step:.2g}" if step else "")


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

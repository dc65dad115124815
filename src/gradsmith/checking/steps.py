"""The five-step walk: from "does it run" to the verdict, each step with what to try if it fails.

gradsmith check file.py::Fn --steps
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradsmith.findings import one_line
from gradsmith.lab import Lab
from gradsmith.lab.measure.differences import Probe, slopes
from gradsmith.lab.measure.gradient import moved, typical_size
from gradsmith.lab.measure.values import finite

_LARGE, _SMALL = 1e6, 1e-6


@dataclass(frozen=True)
class Step:
    """One step of the walk: what was seen, and, where it failed or looks odd, what to try."""

    title: str
    state: str  # "ok" | "odd" | "failed"
    seen: list[str] = field(default_factory=list)
    advice: str = ""


def walk(lab: Lab) -> list[Step]:
    """The steps before the verdict, up to the first that fails."""
    steps = []
    for step in (_forward, _backward, _sizes, _by_hand):
        steps.append(step(lab))
        if steps[-1].state == "failed":
            break
    return steps


def _forward(lab: Lab) -> Step:
    title = "forward runs"
    try:
        run = lab.run()
    except Exception as error:  # the user's forward may raise anything
        return Step(title, "failed", [one_line(error)], f"call it by hand with {lab.arguments.shapes()}")
    seen = [f"{name}: {_described(out)}" for name, out in zip(run.output_names, run.outputs)]
    strange = [n for n, out in zip(run.output_names, run.outputs) if out.is_floating_point() and not finite(out)]
    if strange:
        return Step(title, "odd", seen, f"{', '.join(strange)} has NaN or infinity: look at the inputs' range first")
    return Step(title, "ok", seen)


def _backward(lab: Lab) -> Step:
    title = "backward runs"
    run = lab.run()
    if not run.differentiable:
        return Step(title, "failed", ["no output carries a gradient"], "give an input requires_grad=True")
    try:
        grads = run.gradients(run.normal(lab.generator()))
    except Exception as error:  # the user's backward may raise anything
        advice = "print the shapes in backward: one value per input of forward, each with its input's shape"
        return Step(title, "failed", [one_line(error)], advice)
    names = {leaf.position: leaf.name for leaf in lab.arguments.differentiable}
    return Step(title, "ok", [f"{names[p]}: {_described(g)}" for p, g in grads.items()])


def _sizes(lab: Lab) -> Step:
    title = "gradients have a sane size"
    run = lab.run()
    grads = run.gradients(run.normal(lab.generator()))
    seen, odd = [], []
    for leaf in lab.arguments.differentiable:
        grad = grads[leaf.position]
        if grad is None:
            seen.append(f"{leaf.name}: None")
            continue
        size = grad.detach().abs().double()
        largest = float(size.max()) if size.numel() else 0.0
        spread = float(size.std()) if size.numel() > 1 else 0.0
        seen.append(f"{leaf.name}: mean {float(size.mean()):.3g}, std {spread:.3g}, max {largest:.3g}")
        if not largest < _LARGE or largest < _SMALL:
            odd.append(leaf.name)
    if odd:
        advice = (
            f"the gradient of {', '.join(odd)} is beyond {_LARGE:g} or below {_SMALL:g}: scale the inputs or the loss"
        )
        return Step(title, "odd", seen, advice)
    return Step(title, "ok", seen)


def _by_hand(lab: Lab) -> Step:
    """One element of the first input, with both numbers."""
    title = "one element by hand"
    leaf = lab.precise[1].differentiable[0]
    output = lab.baseline.run.differentiable[0]
    v = lab.baseline.v[output]
    grad = lab.gradients({output: v})[leaf.position]
    index = int(grad.abs().argmax()) if grad is not None else 0
    e = torch.zeros_like(leaf.tensor.detach()).contiguous()
    e.view(-1)[index] = typical_size(leaf.tensor)
    evaluate = moved(*lab.precise, leaf, e, lab.settings)
    (slope,) = slopes(evaluate, [Probe(output, v, 1.0)])
    true = slope.value / typical_size(leaf.tensor)
    claimed = float(grad.flatten()[index].real) if grad is not None else 0.0
    seen = [f"{leaf.name} element {index}: backward says {claimed:.8g}, differences say {true:.8g}"]
    if abs(true - claimed) > 1e-4 * max(abs(true), abs(claimed)) and not lab.surrogate:
        return Step(
            title, "odd", seen, "derive this one element on paper; the verdict below says what kind of wrong it is"
        )
    return Step(title, "ok", seen)


def _described(tensor: Tensor | None) -> str:
    if tensor is None:
        return "None"
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"

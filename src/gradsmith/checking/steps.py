"""The walk to a wrong gradient: from "does it run" to one element with both numbers, each step with what to try there.

It is walked where the gradient is wrong: at the example, or at the explored one that failed. Where nothing is wrong, it is
walked at the example.

gradsmith check file.py::Fn --steps
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradsmith.checking.discoveries import weight_of
from gradsmith.checking.verdict import Weight
from gradsmith.findings import one_line
from gradsmith.lab import Lab
from gradsmith.lab.explore.explorer import explored
from gradsmith.lab.explore.move import told
from gradsmith.lab.measure.differences import Probe, slopes
from gradsmith.lab.measure.gradient import Judgement, Mismatch, moved, typical_size
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import known
from gradsmith.lab.subject.arguments import Leaf

_LARGE, _SMALL = 1e6, 1e-6
_WORST_FIRST: tuple[Weight, ...] = ("error", "assumption", "warning")


@dataclass(frozen=True)
class Step:
    """One step of the walk: what was seen, and what to try."""

    title: str
    state: str  # "ok" | "odd" | "failed"
    seen: list[str] = field(default_factory=list)
    advice: str = ""


@dataclass(frozen=True)
class WalkPlace:
    """Where the walk goes: a subject on inputs, the number that is wrong there, and how these inputs differ from the example."""

    lab: Lab
    mismatch: Mismatch | None = None
    words: str = ""
    raises: bool = False
    v: Tensor | None = None  # the grad_output by which the finding shows the number

    @property
    def name(self) -> str:
        return self.mismatch.argument if self.mismatch is not None else ""


def walk(lab: Lab) -> list[Step]:
    """The steps before the verdict, up to the first that fails. Probes come first: they know what is wrong, and where."""
    place = wrong_place(lab)
    steps = []
    for step in (_forward, _backward, _sizes, _by_hand):
        steps.append(step(place))
        if steps[-1].state == "failed":
            break
    return steps


def wrong_place(lab: Lab) -> WalkPlace:
    """The example, if it is wrong there; else the explored one that failed worst, the simplest of them; else the example.

    What is a remark by the table of verdicts (backward raises at size 0) is not where a gradient is wrong.
    """
    judged = vars(lab).get("gradient")
    wrong = [p for p in judged.wrong if p.mismatch is not None] if isinstance(judged, Judgement) else []
    if wrong:
        return WalkPlace(lab, wrong[0].mismatch, v=wrong[0].v)
    found = [d for each in known(lab, explored) for d in each.found if d.trial.arguments is not None]
    serious = [d for d in found if weight_of(d) in _WORST_FIRST]
    for discovery in sorted(serious, key=lambda d: (_WORST_FIRST.index(weight_of(d)), len(d.trial.moves))):
        trial = discovery.trial
        if trial.arguments is not None and (trial.mismatch is not None or trial.status == "raises"):
            there = Lab(lab.precise[0], trial.arguments, lab.settings, lab.level, isolated=lab.isolated)
            return WalkPlace(there, trial.mismatch, told(trial.moves), raises=trial.status == "raises")
    return WalkPlace(lab)


def _forward(place: WalkPlace) -> Step:
    lab = place.lab
    title = f"forward runs {place.words}".rstrip()
    try:
        run = lab.run()
    except Exception as error:  # the user's forward may raise anything
        return Step(title, "failed", [one_line(error)], f"call it by hand with {lab.arguments.shapes()}")
    seen = [f"{name}: {_described(out)}" for name, out in zip(run.output_names, run.outputs)]
    strange = [n for n, out in zip(run.output_names, run.outputs) if out.is_floating_point() and not finite(out)]
    if strange:
        return Step(title, "odd", seen, f"{', '.join(strange)} has NaN or infinity: look at the inputs' range first")
    if place.words:
        seen = [f"inputs: {lab.arguments.shapes()}", *seen]
        return Step(title, "ok", seen, f"call forward {place.words} yourself, and see which of its lines run there")
    advice = "compare these outputs with what you expect: backward is compared with this forward" if place.name else ""
    return Step(title, "ok", seen, advice)


def _backward(place: WalkPlace) -> Step:
    lab = place.lab
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
    seen = [f"{names[p]}: {_described(g)}" for p, g in grads.items()]
    if not place.name:
        return Step(title, "ok", seen)
    return Step(title, "ok", seen, f"in backward, print the tensors that the gradient of '{place.name}' is made of")


def _sizes(place: WalkPlace) -> Step:
    lab = place.lab
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
        mean = float(size.mean()) if size.numel() else 0.0
        seen.append(f"{leaf.name}: mean {mean:.3g}, std {spread:.3g}, max {largest:.3g}")
        if not largest < _LARGE or largest < _SMALL:
            odd.append(leaf.name)
    if odd:
        advice = (
            f"the gradient of {', '.join(odd)} is beyond {_LARGE:g} or below {_SMALL:g}: scale the inputs or the loss"
        )
        return Step(title, "odd", seen, advice)
    if not place.name:
        return Step(title, "ok", seen)
    others = [leaf.name for leaf in lab.arguments.differentiable if leaf.name != place.name]
    beside = f"; leave what it returns for {', '.join(others)} as it is" if others else ""
    return Step(title, "ok", seen, f"change only the lines that compute the gradient of '{place.name}'{beside}")


def _by_hand(place: WalkPlace) -> Step:
    """One element of the input that is wrong, with both numbers; of the first input where none is."""
    lab, title = place.lab, "one element by hand"
    leaf = _leaf(place)
    mismatch = place.mismatch
    output = mismatch.output if mismatch is not None else lab.baseline.run.differentiable[0]
    v = place.v if place.v is not None else lab.baseline.v[output]
    grad = lab.gradients({output: v})[leaf.position]
    index = _element(mismatch, leaf, grad)
    e = torch.zeros_like(leaf.tensor.detach()).contiguous()
    e.view(-1)[index] = typical_size(leaf.tensor)
    evaluate = moved(*lab.precise, leaf, e, lab.settings)
    (slope,) = slopes(evaluate, [Probe(output, v, 1.0)])
    true = slope.value / typical_size(leaf.tensor)
    claimed = float(grad.flatten()[index].real) if grad is not None else 0.0
    at = ", ".join(str(int(i)) for i in torch.unravel_index(torch.tensor(index), leaf.tensor.shape))
    where = f"{leaf.name}[{at}]" if at else leaf.name
    value = leaf.tensor.detach().reshape(-1)[index].item()
    number = f"{value:.6g}" if isinstance(value, float) else str(value)
    seen = [
        f"at {where} = {number}, for a random grad_output: backward returned {claimed:.8g}, the true gradient is {true:.8g}"
    ]
    if abs(true - claimed) > 1e-4 * max(abs(true), abs(claimed)) and not lab.surrogate:
        advice = f"derive the gradient of {where} on paper, and compare each factor with what backward has there"
        return Step(title, "odd", seen, f"{advice}; the verdict below says what kind of wrong it is")
    return Step(title, "ok", seen)


def _leaf(place: WalkPlace) -> Leaf:
    leaves = place.lab.precise[1].differentiable
    return next((leaf for leaf in leaves if leaf.name == place.name), leaves[0])


def _element(mismatch: Mismatch | None, leaf: Leaf, grad: Tensor | None) -> int:
    """The element that was found wrong; else the one with the largest gradient."""
    if mismatch is not None and mismatch.element is not None:
        flat = torch.arange(leaf.tensor.numel()).reshape(leaf.tensor.shape)
        return int(flat[mismatch.element])
    return int(grad.abs().argmax()) if grad is not None and grad.numel() else 0


def _described(tensor: Tensor | None) -> str:
    if tensor is None:
        return "None"
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"

"""Other precisions: the gradient in float32, bfloat16 or float16 against float64, at the very same (rounded) inputs.

What a precision can give is measured, not assumed: where forward under autograd runs in the same precision, its error is
the yardstick.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab, cast_target
from gradsmith.lab.measure.oracle import OwnForward, own_forward
from gradsmith.lab.measure.values import finite, widened
from gradsmith.lab.once import once
from gradsmith.lab.process import torch_says
from gradsmith.lab.run import Run, forward
from gradsmith.lab.subject.foreign import takes_pointers

LOW = {"standard": (torch.float32,), "deep": (torch.float32, torch.bfloat16, torch.float16)}


@dataclass(frozen=True)
class Precision:
    """What became of one precision: errors are shares of the largest gradient; `ulps` counts units in the last place."""

    dtype: torch.dtype
    state: str  # "measured", "rejected" by forward, "raises" in backward, or "unjudged"
    detail: str = ""
    argument: str = ""
    error: float = 0.0
    yardstick: float | None = None  # the error that autograd makes in this precision
    raised: BaseException | None = None

    @property
    def ulps(self) -> float:
        return self.error / torch.finfo(self.dtype).eps


@once
def precisions(lab: Lab) -> list[Precision]:
    """Every precision of this level."""
    return [_measured(lab, dtype) for dtype in LOW.get(lab.level, ())]


def worth_measuring(lab: Lab) -> bool:
    """A gradient that is right in float64, made by code that looks at the dtype of what it is given."""
    if lab.surrogate or lab.approximate or lab.gradient.wrong or lab.gradient.noisy:
        return False
    return not takes_pointers(lab)


def _measured(lab: Lab, dtype: torch.dtype) -> Precision:
    if any(leaf.tensor.is_complex() for leaf in lab.arguments.leaves) and dtype != torch.float32:
        return Precision(dtype, "unjudged", "complex inputs have no such precision")
    low = lab.arguments.cast(dtype)
    try:
        target = cast_target(lab.target, dtype)
        run = forward(target, low, seed=lab.settings.seed)
    except Exception as error:  # a subject may exist in its own precision only
        return Precision(dtype, "rejected", _words(error))
    v = run.normal(lab.generator(9))
    try:
        got = run.gradients(v)
    except Exception as error:
        missing = torch_says.kernel_missing(error)
        return Precision(dtype, "rejected" if missing else "raises", _words(error), raised=error)
    return _compared(lab, dtype, run, v, got)


def _compared(lab: Lab, dtype: torch.dtype, run: Run, v: dict[int, Tensor], got: dict[int, Tensor | None]) -> Precision:
    wide = run.arguments.cast(torch.float64)
    try:
        exact = forward(lab.precise[0], wide, seed=lab.settings.seed)
        kinds = {o: exact.outputs[o].dtype for o in v}
        truth = exact.gradients({o: g.to(kinds[o]) for o, g in v.items()})
    except Exception as error:
        return Precision(dtype, "unjudged", _words(error))
    if any(a.shape != b.shape for a, b in zip(exact.outputs, run.outputs)) or not _finite(exact.outputs, run.outputs):
        return Precision(dtype, "unjudged", "the outputs overflow in this precision")
    if exact.outputs[0].dtype == run.outputs[0].dtype or _outputs_off(exact, run) > 0.1:
        # Rounding flips a comparison (sign, argmax, a threshold): another branch, not another error.
        return Precision(dtype, "unjudged", "forward itself differs in this precision")
    oracle = own_forward(lab.target, run, lab.settings.seed, lab.settings.reference) if _confirmed(lab) else None
    worst = Precision(dtype, "measured")
    for leaf in run.arguments.differentiable:
        off = _off(got[leaf.position], truth[leaf.position])
        if off is not None and off >= worst.error:
            yard = _yardstick(oracle, v, leaf.position, truth[leaf.position]) if oracle is not None else None
            worst = Precision(dtype, "measured", "", leaf.name, off, yard)
    if worst.error == float("inf") and not any(x.tensor.dtype == dtype for x in lab.arguments.differentiable):
        return Precision(dtype, "unjudged", "the gradient overflows in this precision, which is not the example's")
    return worst


def _confirmed(lab: Lab) -> bool:
    """Whether forward under autograd was seen to be right in float64."""
    pairs = lab.gradient.pairs
    return bool(pairs) and all(p.truth is not None for p in pairs)


def _yardstick(oracle: OwnForward, v: dict[int, Tensor], position: int, truth: Tensor | None) -> float | None:
    try:
        parts = [oracle.gradients(o, g)[position] for o, g in v.items()]
    except Exception:  # the user's forward, in a mode it was not written for
        return None
    return _off(torch.stack([p.double() for p in parts]).sum(0), truth)


def _off(got: Tensor | None, truth: Tensor | None) -> float | None:
    if got is None or truth is None or got.shape != truth.shape or not truth.numel():
        return None
    got, truth = widened(got.detach()), widened(truth)
    size = float(truth.abs().max())
    if not size or not bool(torch.isfinite(truth).all()):
        return None
    off = float((got.to(truth.dtype) - truth).abs().max())
    return off / size if off == off else float("inf")


def _outputs_off(exact: Run, run: Run) -> float:
    found = [_off(b, a.detach()) for a, b in zip(exact.outputs, run.outputs) if a.is_floating_point()]
    return max((x for x in found if x is not None), default=0.0)


def _finite(*outputs: list[Tensor]) -> bool:
    return all(finite(o) for many in outputs for o in many if o.is_floating_point())


def _words(error: BaseException) -> str:
    line = next((text.strip() for text in str(error).splitlines() if text.strip()), "")
    return f"{type(error).__name__}: {line}"

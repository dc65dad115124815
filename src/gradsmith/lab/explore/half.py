"""The gradient in float16, at the sizes of numbers that mixed precision meets: large inputs, and a scaled loss.

The yardstick is the user's own forward under autograd, in the same precision at the same inputs: only where that is finite
and accurate is anything said of the custom gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab.explore.drawing import domains_of, within
from gradsmith.lab.lab import Lab, cast_target
from gradsmith.lab.measure.oracle import OwnForward, own_forward
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import once
from gradsmith.lab.run import Run, forward, recorded
from gradsmith.lab.subject.arguments import Arguments, Leaf

DTYPE = torch.float16
WORSE = 30  # times the error of autograd
_LEAST = 0.05  # of the largest gradient: less is what rounding may do to any formula
# Factors of the inputs and of grad_output, the largest that forward and autograd bear is taken. `torch.amp.GradScaler`
# begins at 65536 and halves it until nothing overflows.
_SCALES = ((512, 1024), (64, 1024), (8, 1024), (1, 1024))
Judged = tuple[Leaf, float, float]


@dataclass(frozen=True)
class HalfLoss:
    """A gradient that float16 spoils, and autograd's own, which it does not. Errors are shares of the largest gradient."""

    leaf: Leaf
    error: float  # infinite where the gradient is
    autograd: float
    inputs_times: int
    loss_times: int
    widens: bool  # forward converts float16 to a wider type: it was written for it

    @property
    def words(self) -> str:
        """Where: empty for the example's own inputs and a grad_output of size 1."""
        scaled = f"a loss scale of {self.loss_times}" if self.loss_times > 1 else ""
        large = f"inputs {self.inputs_times} times as large" if self.inputs_times > 1 else ""
        return " and ".join(part for part in (large, scaled) if part)


@once
def half_loss(lab: Lab) -> HalfLoss | None:
    """What float16 does to this gradient and not to that of autograd; None where nothing, or nothing can be told."""
    plain = [leaf for leaf in lab.arguments.leaves if leaf.tensor.is_complex() or leaf.tensor.layout != torch.strided]
    pairs = lab.gradient.pairs
    if plain or not pairs or any(pair.truth is None for pair in pairs):
        return None  # autograd was not seen to be right
    here = list(_judged(lab, 1, 1))
    widens = bool(here) and _widens(lab)
    if (found := _spoilt(here, 1, 1, widens)) is not None or not here:
        return found
    if (
        not widens and lab.level != "deep"
    ):  # numbers that the example does not have, in a precision that nobody spoke of
        return None
    for number, scales in enumerate(_SCALES):
        if judged := list(_judged(lab, *scales)):
            found = _spoilt(judged, *scales, widens)  # smaller numbers overflow no sooner
            gentler = (_spoilt(list(_judged(lab, *s)), *s, widens) for s in reversed(_SCALES[number + 1 :]) if found)
            return next((f for f in gentler if f is not None), found)
    return None


def _spoilt(judged: Sequence[Judged], inputs_times: int, loss_times: int, widens: bool) -> HalfLoss | None:
    for leaf, error, own in judged:
        if error > max(_LEAST, WORSE * own):
            return HalfLoss(leaf, error, own, inputs_times, loss_times, widens)
    return None


def _judged(lab: Lab, inputs_times: int, loss_times: int) -> Iterator[Judged]:
    """(input, error of the gradient, error of autograd's) for every input whose gradient autograd gets right in float16."""
    low = _scaled(lab.precise[1], inputs_times).cast(DTYPE)
    try:
        run = forward(cast_target(lab.target, DTYPE), low, seed=lab.settings.seed)
        exact = forward(lab.precise[0], low.cast(torch.float64), seed=lab.settings.seed)
        if not _comparable(run, exact):
            return
        v = {o: g * loss_times for o, g in run.normal(lab.generator(9)).items()}
        got = run.gradients(v)
        truth = exact.gradients({o: g.to(exact.outputs[o].dtype) for o, g in v.items()})
        oracle = own_forward(lab.target, run, lab.settings.seed, lab.settings.reference)
    except Exception:  # the subject may exist in its own precision only, or lack a kernel in this one
        return
    if oracle is None:
        return
    for leaf in low.differentiable:
        wanted, found = truth[leaf.position], got[leaf.position]
        if wanted is None or found is None:
            continue
        own = _off(_by_autograd(oracle, v, leaf.position), wanted)
        if math.isfinite(own) and WORSE * own < 1:
            yield leaf, _off(found, wanted), own


def _scaled(arguments: Arguments, times: int) -> Arguments:
    """Larger numbers of the same domains."""
    if times == 1:
        return arguments
    changed = {}
    for leaf in arguments.differentiable:
        before = leaf.tensor.detach()
        held = domains_of(before, differentiable=True)
        changed[leaf.position] = (within(held, before * times) if held else before * times).to(before.dtype)
    return arguments.replaced(changed)


def _comparable(run: Run, exact: Run) -> bool:
    """Whether forward gives the same numbers in both precisions; where it does not, it took another branch, or overflowed."""
    if run.differentiable != exact.differentiable or not run.differentiable:
        return False
    pairs = [(a.detach(), b.detach()) for a, b in zip(run.outputs, exact.outputs) if b.is_floating_point()]
    if any(a.shape != b.shape or a.dtype == b.dtype or not finite(a) or not finite(b) for a, b in pairs):
        return False
    return all(_off(a, b) <= _LEAST for a, b in pairs if a.numel())


def _by_autograd(oracle: OwnForward, v: dict[int, Tensor], position: int) -> Tensor:
    parts = [oracle.gradients(o, g)[position].double() for o, g in v.items()]
    return torch.stack(parts).sum(0)


def _off(got: Tensor, truth: Tensor) -> float:
    """The largest error as a share of the largest number; infinite where something is not finite."""
    if got.shape != truth.shape or not finite(truth) or not finite(got):
        return math.inf
    size = float(truth.abs().max()) if truth.numel() else 0.0
    off = float((got.double() - truth.double()).abs().max()) if truth.numel() else 0.0
    return off / size if size else (0.0 if not off else math.inf)


def _widens(lab: Lab) -> bool:
    tape = recorded(cast_target(lab.target, DTYPE), lab.precise[1].cast(DTYPE), lab.settings.seed)
    wide = (torch.float32, torch.float64)
    return any(
        any(seen.dtype == DTYPE and seen.origins for seen in operation.operands)
        and any(seen.dtype in wide for seen in operation.results)
        for operation in tape.aten()
    )

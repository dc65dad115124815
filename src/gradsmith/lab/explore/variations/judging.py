"""Try a variation: does forward take it, and is the gradient still that of forward?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.compressed import digits_saved
from gradsmith.lab.measure.gradient import Judgement, Mismatch, Settings, distinct, judge
from gradsmith.lab.measure.implied import implied
from gradsmith.lab.measure.resemblance import surrogate_kind
from gradsmith.lab.measure.screening import is_plainly_right
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import known, once
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

Status = Literal["right", "wrong", "raises", "rejected", "unjudged"]


@dataclass(frozen=True)
class Variation:
    """Other arguments for the same subject. `doubtful` means: the author may never have meant to allow it."""

    words: str  # how a message says it: "with x of shape (1, 3)"
    arguments: Arguments
    kind: str
    argument: str | None = None
    doubtful: bool = False
    empty: bool = False  # tensors without elements


@dataclass(frozen=True)
class Outcome:
    """What became of a variation: `detail` is the exception, `mismatch` the wrong element."""

    variation: Variation
    status: Status
    detail: str = ""
    mismatch: Mismatch | None = None


@once
def tried(lab: Lab, kind: str) -> list[Outcome]:
    """The outcome of every variation of one kind (shapes, options, indices, parameters, thresholds)."""
    return [outcome(lab, v) for v in _variations(lab, kind)]


def rejected(lab: Lab) -> list[str]:
    """Every variation that forward rejected so far, with its exception."""
    return [f"{o.variation.words}: {o.detail}" for found in known(lab, tried) for o in found if o.status == "rejected"]


def outcome(lab: Lab, variation: Variation) -> Outcome:
    """Judge one variation in the precision in which the subject itself was judged."""
    target, arguments = lab.precise[0], variation.arguments
    try:
        run = forward(target, arguments, seed=lab.settings.seed)
    except Exception as error:
        return Outcome(variation, "rejected", _said(error))
    defined = all(finite(o) for o in run.outputs if o.is_floating_point() or o.is_complex())
    if not defined or not run.differentiable:
        return Outcome(variation, "unjudged", "its outputs are not finite" if not defined else "it has no gradient")
    v = run.normal(lab.generator(7))
    try:
        grads = run.gradients(v)
    except Exception as error:  # the user's backward, on inputs that forward took
        return Outcome(variation, "raises", _said(error))
    if variation.empty and (spoilt := _not_finite(arguments, grads)):
        # No difference quotient shows it: nothing moves, and nothing is compared with NaN.
        return Outcome(variation, "wrong", f"the gradient of '{spoilt}' is NaN or infinite, where it has to be 0")
    if lab.surrogate or lab.approximate:
        return Outcome(variation, "unjudged", "the gradient is not meant to be the derivative")
    if is_plainly_right(run, v, _settings(lab), grads):
        return Outcome(variation, "right")
    # What excuses a gradient has to excuse all that is wrong: where it does not excuse the first, the rest need not be seen.
    judged = judge(target, arguments, _settings(lab), until_wrong=True)
    found = _judged(lab, variation, judged)
    seen = {pair.leaf.position for pair in judged.pairs}
    if found.status == "wrong" or seen.issuperset(x.position for x in distinct(arguments.differentiable)):
        return found
    return _judged(lab, variation, judge(target, arguments, _settings(lab)))


def _judged(lab: Lab, variation: Variation, judged: Judgement) -> Outcome:
    wrong = [p for p in judged.wrong if p.mismatch is not None]
    if not wrong:
        return Outcome(variation, "unjudged" if judged.noisy else "right")
    if surrogate_kind(judged, lab.settings) is not None:
        return Outcome(variation, "unjudged", "the gradient looks like a surrogate")
    digits = digits_saved(lab, variation.arguments)
    if all(pair.off <= digits for pair in wrong):
        return Outcome(variation, "unjudged", "it keeps fewer digits for backward")
    return Outcome(variation, "wrong", mismatch=wrong[0].mismatch)


def _settings(lab: Lab) -> Settings:
    """Digits lost inside backward have been reported, and are no more wrong at another size."""
    if not lab.gradient.imprecise:
        return lab.settings
    return replace(lab.settings, rtol=max(lab.settings.rtol or 0.0, 1e-4))


def _not_finite(arguments: Arguments, grads: Mapping[int, Tensor | None]) -> str:
    for leaf in arguments.differentiable:
        grad = grads.get(leaf.position)
        if grad is not None and not bool(torch.isfinite(grad).all()):
            return leaf.name
    return ""


def refusal(target: Target, arguments: Arguments, seed: int) -> str:
    """The exception with which forward rejects these arguments, or nothing."""
    try:
        forward(target, arguments, seed=seed)
    except Exception as error:
        return _said(error)
    return ""


def worth_trying(lab: Lab) -> bool:
    """Where the gradient is wrong, noisy or right on a constrained domain only, other inputs prove nothing."""
    if lab.surrogate or lab.approximate:
        return True
    judged = lab.gradient
    settled = not judged.wrong and not judged.noisy and not any(p.explained for p in judged.pairs)
    return settled and lab.settings.project is None and bool(judged.pairs)


def _variations(lab: Lab, kind: str) -> Iterable[Variation]:
    from gradsmith.lab.explore.variations import indices, options, parameters, shapes, thresholds

    if not worth_trying(lab):
        return ()
    sources = {
        "shapes": shapes, "options": options, "indices": indices, "parameters": parameters, "thresholds": thresholds,
    }  # fmt: skip
    found: Iterable[Variation] = sources[kind].variations(lab)
    if kind in ("parameters", "thresholds") or not (follows := _implied(lab)):
        return found
    # Only a resizing of all of them together leaves an inverse the inverse of its permutation.
    return [v for v in found if kind == "shapes" and follows < _resized(lab, v)]


@once
def _implied(lab: Lab) -> set[int]:
    target, arguments = lab.precise
    return set(implied(target, arguments, lab.settings.seed))


def _resized(lab: Lab, variation: Variation) -> set[int]:
    before = {x.position: x.tensor.shape for x in lab.precise[1].leaves}
    return {x.position for x in variation.arguments.leaves if x.tensor.shape != before[x.position]}


def _said(error: BaseException) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}"

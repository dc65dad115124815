"""Does a wrong gradient look like one that was meant to differ from the derivative?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.lab.explore.intent import holds_parts, passes_a_step, tests_grad_output, without_steps
from gradsmith.lab.measure.gradient import Judgement, Pair, Settings, claims_of, moved, typical_size
from gradsmith.lab.measure.steering import steered
from gradsmith.lab.run import Run, normal_like, recorded


@dataclass(frozen=True)
class Resemblance:
    """The kind of surrogate a wrong gradient looks like, and what it is that looks so; `{}` stands for the inputs."""

    kind: str
    words: str


CONSTANT = "forward is a step function of {}, whose derivative is 0, and backward returns a gradient that is not 0"
IDENTITY = "forward returns {} unchanged, and backward does not return grad_output unchanged"
_ROUNDED = "forward rounds what it computes from {}, and backward returns a gradient as if it did not"
_SMOOTH = "forward has only the slopes 0 and 1 in {}, and backward returns slopes between them"
_THROUGH = "forward clamps {} to bounds other than 0, and backward passes every gradient on"
_NOISELESS = "backward returns the gradient in {} of forward without its random numbers and its steps"
HELD = "backward takes for a constant what forward computes from {} without gradients (no_grad, detach)"
_STEERED = (
    "backward returns the gradient of {} with '{mine}' in the place of '{other}', and forward does not use '{mine}'"
)
TESTED = "backward looks at the value of the gradient before it passes it on to {}"


def surrogate_kind(judgement: Judgement, settings: Settings) -> str | None:
    """The kind of surrogate that every wrong pair resembles."""
    found = resemblance(judgement, settings)
    return found.kind if found is not None else None


def resemblance(judgement: Judgement, settings: Settings) -> Resemblance | None:
    """What every wrong pair has of a surrogate: forward is flat, the identity, rounds or adds noise. No word counts."""
    pairs = judgement.wrong
    if not pairs:
        return None
    kinds = [_kind(judgement, settings, pair) for pair in pairs]
    if None not in kinds and len(set(kinds)) == 1:
        kind = str(kinds[0])
        return Resemblance(kind, CONSTANT if kind == "straight-through" else IDENTITY)
    if any(pair.missing for pair in pairs):
        return None
    run = judgement.run
    if _all_pass_a_step(run, [p for p in pairs if not p.flat], settings.seed):
        return Resemblance("straight-through", _ROUNDED)
    if holds_parts(run.target) and all(_is_recorded(judgement, pair) for pair in pairs):
        return Resemblance("custom", HELD)
    if weighs_grad_output(judgement, settings):
        return Resemblance("clip", TESTED)
    if is_smoothed(judgement, settings):
        return Resemblance("straight-through", _NOISELESS)
    if all(_passes_on(judgement, pair) for pair in pairs):
        return Resemblance("straight-through", _THROUGH)
    if all(_smooths(judgement, pair) for pair in pairs):
        return Resemblance("custom", _SMOOTH)
    if (exchange := steered(judgement, settings)) is not None:
        mine, other = exchange
        return Resemblance("custom", _STEERED.format("{}", mine=mine, other=other))
    return None


def weighs_grad_output(judgement: Judgement, settings: Settings) -> bool:
    """Whether backward looks at the value of grad_output, and it shows: the opposite one does not get the opposite gradient."""
    run = judgement.run
    return tests_grad_output(run.target) and all(_is_uneven(run, settings, pair) for pair in judgement.wrong)


def _is_uneven(run: Run, settings: Settings, pair: Pair) -> bool:
    for factor in (-1.0, -1e3, -1e-3):
        claimed = claims_of(run.target, run.arguments, settings, {pair.output: factor * pair.v}, pair.output)
        other = claimed[pair.leaf.position]
        if other is not None and not torch.allclose(other, factor * pair.claimed, rtol=1e-6, atol=0.0):
            return True
    return False


def _all_pass_a_step(run: Run, pairs: list[Pair], seed: int) -> bool:
    if not pairs:
        return True
    tape = recorded(run.target, run.arguments, seed)
    return all(passes_a_step(tape, p.leaf.position) for p in pairs)


def _is_recorded(judgement: Judgement, pair: Pair) -> bool:
    """Backward returns what autograd records of forward, which is not all that happens there."""
    if judgement.oracle is None:
        return False
    recorded = judgement.oracle.gradients(pair.output, pair.v)[pair.leaf.position]
    return bool(recorded.abs().gt(0).any()) and torch.allclose(recorded, pair.claimed, rtol=1e-6, atol=1e-9)


def is_smoothed(judgement: Judgement, settings: Settings) -> bool:
    """Backward returns what autograd makes of forward, were every step the identity and every normal draw its mean."""
    smooth = without_steps(judgement.run.target, judgement.run.arguments, settings.seed)
    if smooth is None:
        return False
    for pair in judgement.wrong:
        if smooth.outputs[pair.output].shape != pair.v.shape:
            return False
        meant = smooth.gradients(pair.output, pair.v)[pair.leaf.position]
        if meant.shape != pair.claimed.shape or not torch.allclose(meant, pair.claimed, rtol=1e-6, atol=1e-9):
            return False
    return True


def _smooths(judgement: Judgement, pair: Pair) -> bool:
    """Elementwise, the derivative of forward is 0 or 1, and what backward returns is neither, nowhere."""
    slope = _steps_of(judgement, pair)
    if slope is None:
        return False
    claimed = pair.claimed / pair.v
    return bool(((claimed > -0.25) & (claimed < 1.25) & (claimed != 0) & (claimed != 1)).all())


def _passes_on(judgement: Judgement, pair: Pair) -> bool:
    """Elementwise, forward is flat at values that are not 0, and backward returns grad_output as it is.

    At 0 it may as well be a relu that forgot its mask.
    """
    slope = _steps_of(judgement, pair)
    if slope is None or not torch.equal(pair.claimed, pair.v):
        return False
    flat = judgement.run.outputs[pair.output].detach()[slope == 0]
    return bool((flat != 0).all())


def _steps_of(judgement: Judgement, pair: Pair) -> Tensor | None:
    """The elementwise derivative of forward, if it is 0 at some elements and 1 at all others."""
    if (
        judgement.oracle is None
        or pair.claimed.is_complex()
        or pair.claimed.shape != pair.v.shape
        or pair.v.numel() < 2
    ):
        return None
    slope = judgement.oracle.gradients(pair.output, pair.v)[pair.leaf.position] / pair.v
    ones = torch.isclose(slope, torch.ones_like(slope))
    both = bool((slope == 0).any()) and bool(ones.any())
    return slope if both and bool(((slope == 0) | ones).all()) else None


def _kind(judgement: Judgement, settings: Settings, pair: Pair) -> str | None:
    if pair.missing:
        return "stop" if _is_identity(judgement, settings, pair) else None
    if pair.flat or _flat_beside(judgement, settings, pair):
        return "straight-through"
    if not _is_identity(judgement, settings, pair):
        return None
    return _of_identity(pair.claimed, pair.v)


def _flat_beside(judgement: Judgement, settings: Settings, pair: Pair) -> bool:
    """Whether forward only moves because some elements stand exactly on a step: a little way off, it is constant."""
    given, run, oracle = pair.leaf.tensor.detach(), judgement.run, judgement.oracle
    if oracle is not None and bool(oracle.gradients(pair.output, pair.v)[pair.leaf.position].abs().gt(0).any()):
        return False
    size = typical_size(given)
    # Where nobody else says that the slope is zero, a forward in few digits must not pass for a constant one.
    small = 4e-3 if oracle is None else 1e-6
    generator = torch.Generator().manual_seed(settings.seed + 53)
    for _ in range(3):
        aside = normal_like(given, generator) * size * 0.02
        bit = normal_like(given, generator) * size * small
        places = (moved(run.target, run.arguments, pair.leaf, step, settings) for step in (aside, aside + bit))
        here, there = (evaluate(1.0)[pair.output] for evaluate in places)
        if not torch.equal(here, there):
            return False
    return True


def _is_identity(judgement: Judgement, settings: Settings, pair: Pair) -> bool:
    """Output equals input here and a step away: at ones, x * x looks like the identity, too."""
    given = pair.leaf.tensor.detach()
    drawn = normal_like(given, torch.Generator().manual_seed(settings.seed + 41))
    step = drawn * typical_size(given) * 0.1
    run = judgement.run
    evaluate = moved(run.target, run.arguments, pair.leaf, step, settings)
    for t in (0.0, 1.0):
        output, wanted = evaluate(t)[pair.output], given + t * step
        if output.shape != wanted.shape or not torch.equal(output, wanted.to(output.dtype)):
            return False
    return True


def _of_identity(claimed: Tensor, v: Tensor) -> str:
    ratio = claimed / v
    if torch.allclose(ratio, ratio.flatten()[:1].expand_as(ratio.flatten()).view_as(ratio), rtol=1e-6):
        return "reversal" if float(ratio.flatten()[0].real) < 0 else "scale"
    same = torch.isclose(claimed, v)
    return "clip" if bool(same.any()) and not bool((claimed == 0).any()) else "custom"

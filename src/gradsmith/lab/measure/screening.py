"""A short look at a gradient that is probably right, with few evaluations of forward. Only `judge` may call one wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradsmith.lab.measure.differences import (
    GOOD_ENOUGH,
    Evaluate,
    Probe,
    at_step,
    attainable,
    central,
    dot,
    precision,
    slopes,
)
from gradsmith.lab.measure.gradient import (
    FLOOR,
    Judgement,
    NotNearby,
    Pair,
    Settings,
    claims_of,
    compare_exactly,
    distinct,
    moved_together,
    typical_size,
    working_dtype,
)
from gradsmith.lab.measure.oracle import OwnForward, own_forward
from gradsmith.lab.measure.values import finite
from gradsmith.lab.pieces import pieces
from gradsmith.lab.run import Run, forward, normal_like
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.target import Target

Claims = dict[int, dict[int, Tensor]]  # by output, then by input
_STEP = 1e-3
_SMALL_STEP = 1e-5  # truncation 1e-10, round-off 1e-11: where the oracle knows the slope, one difference confirms it
_CONFIRMED = 1e-6
_TELLS = 1e-3  # a slope less certain than that says too little of the gradient


def is_plainly_right(
    run: Run, v: dict[int, Tensor], settings: Settings, gradients: dict[int, Tensor | None] | None = None
) -> bool:
    """Whether every gradient is right beyond doubt. False says nothing.

    `gradients` are those that the first backward through `run` gave for the grad_outputs `v`, if there was one. All inputs
    are moved at once: what is wrong in one of them shows in the sum. Where forward under autograd gives the same gradients, element by
    element, a single difference confirms that it describes forward; else the slope is measured as `judge` measures it,
    and has to be as certain as there.
    """
    return _agreement(run, v, settings, gradients, _same_elements) is not None


def screened(target: Target, arguments: Arguments, settings: Settings, *, autograd: bool = True) -> Judgement | None:
    """The judgement of a gradient that is right, with few runs; None where it takes more to judge it.

    Without `autograd` differences alone are asked, as where forward leaves torch. Digits may be lost on the way through a long
    loop, in backward as under autograd: as in `judge`, what the oracle says of small elements is then measured.
    """
    run = forward(target, arguments, seed=settings.seed)
    if not run.differentiable:
        return None
    v = run.normal(torch.Generator().manual_seed(settings.seed + 1))
    gradients = run.gradients(v) if len(run.differentiable) == 1 else None
    if settings.lean:
        run = run.without_graph()
    if (found := _agreement(run, v, settings, gradients, _nearly_same, autograd=autograd)) is None:
        return None
    pairs = []
    for leaf in distinct(arguments.differentiable):
        for o, grads in found.claims.items():
            pair = Pair(leaf, o, v[o], grads[leaf.position], False, measured=abs(found.slopes[o]))
            if found.oracle is not None:
                compare_exactly(pair, found.oracle, target, arguments, settings, run)
            pairs.append(pair)
    return Judgement(run, pairs, found.oracle) if all(p.status == "right" for p in pairs) else None


@dataclass(frozen=True)
class _Agreement:
    """What backward says, the slopes that follow from it, and the oracle that says the same, where there is one."""

    claims: Claims
    slopes: dict[int, float]
    oracle: OwnForward | None


def _agreement(
    run: Run,
    v: dict[int, Tensor],
    settings: Settings,
    gradients: dict[int, Tensor | None] | None,
    alike: Callable[[Tensor, Tensor], bool],
    *,
    autograd: bool = True,
) -> _Agreement | None:
    leaves = distinct(run.arguments.differentiable)
    outputs = [run.outputs[o] for o in run.differentiable]
    dtype = working_dtype(run.arguments, outputs)
    if settings.project is not None or not leaves or (dtype != torch.float64 and not settings.noise):
        return None
    if not all(finite(t) for t in (*outputs, *(x.tensor for x in leaves))):
        return None
    claims = _claims(run, v, gradients, leaves, settings)
    directions = _balanced(leaves, claims, torch.Generator().manual_seed(settings.seed + 3)) if claims else None
    if claims is None or directions is None:
        return None
    evaluate = moved_together(run.target, run.arguments, [(x, directions[x.position]) for x in leaves], settings)
    expected = {o: sum(dot(grads[p], u) for p, u in directions.items()) for o, grads in claims.items()}
    probes = [Probe(o, v[o], _size(claims[o], directions)) for o in claims]
    asked = autograd and not settings.noise
    oracle = own_forward(run.target, run, settings.seed, settings.reference) if asked else None
    try:
        # Without a graph, forward has left torch: autograd then knows nothing of it.
        if settings.noise:
            oracle, right = None, _agreed(evaluate, probes, expected, dtype)
        elif oracle is not None and any(out.requires_grad for out in oracle.outputs):
            right = _same(oracle, v, claims, alike) and _confirmed(evaluate, probes, expected)
        else:
            oracle, right = None, _measured(evaluate, probes, expected)
    except NotNearby:
        return None
    return _Agreement(claims, expected, oracle) if right else None


def same_as_autograd(run: Run, v: dict[int, Tensor], gradients: dict[int, Tensor | None], settings: Settings) -> bool:
    """Whether every gradient is, element by element, that of forward under autograd. Nothing is measured.

    `gradients` are those for the grad_outputs `v`, all outputs together.
    """
    oracle = own_forward(run.target, run, settings.seed, settings.reference)
    if oracle is None or not any(out.requires_grad for out in oracle.outputs):
        return False
    if not all(oracle.outputs[o].requires_grad for o in v):  # a branch that leaves the graph
        return False
    parts = [oracle.gradients(o, grad) for o, grad in v.items()]
    for leaf in distinct(run.arguments.differentiable):
        truth = sum((part[leaf.position] for part in parts[1:]), parts[0][leaf.position])
        claimed = gradients[leaf.position]
        said = torch.zeros_like(truth) if claimed is None else claimed.detach()
        if truth.shape != said.shape or truth.dtype != said.dtype or not bool(torch.isfinite(truth).all()):
            return False
        if truth.numel() and not _same_elements(truth, said):
            return False
    return True


def _claims(
    run: Run, v: dict[int, Tensor], gradients: dict[int, Tensor | None] | None, leaves: list[Leaf], settings: Settings
) -> Claims | None:
    """What backward says about each output alone; None where it says nothing, or nothing but zeros, of some input.

    Several outputs need not all depend on every input: zeros are a claim like any other beside an output that does.
    """
    alone = gradients if len(run.differentiable) == 1 else None
    found: Claims = {}
    by_position = {x.position: x.tensor for x in leaves}
    for o in run.differentiable:
        said = alone or claims_of(run.target, run.arguments, settings, v, o)
        mine = {x.position: g.detach() for x in leaves if (g := said[x.position]) is not None}
        if not all(mine[x.position].shape == x.tensor.shape for x in leaves if x.position in mine):
            return None
        found[o] = {p: mine[p] if p in mine else torch.zeros_like(t.detach()) for p, t in by_position.items()}
        if not any(bool(g.any()) for g in found[o].values()):
            return None
    spoken = all(any(bool(grads[x.position].any()) for grads in found.values()) for x in leaves)
    return found if spoken else None


def _balanced(leaves: list[Leaf], claims: Claims, generator: torch.Generator) -> dict[int, Tensor] | None:
    """A direction for each input, such that all of them move the outputs about as much: none hides behind another.

    None where the gradients are too small to be told from nothing.
    """
    drawn = {x.position: normal_like(x.tensor, generator).mul_(typical_size(x.tensor)) for x in leaves}
    strength = {p: _size({o: g[p] for o, g in claims.items()}, dict.fromkeys(claims, u)) for p, u in drawn.items()}
    least = min(strength.values())
    return {p: u.mul_(least / strength[p]) for p, u in drawn.items()} if least > 0 else None


def _size(gradients: dict[int, Tensor], directions: dict[int, Tensor]) -> float:
    """How far the outputs move if every element does so by chance."""
    return math.sqrt(sum(_squares(g, directions[k]) for k, g in gradients.items()))


def _squares(a: Tensor, b: Tensor) -> float:
    return sum(float((p * q).abs().double().square().sum()) for p, q in pieces(a, b))


def _same(oracle: OwnForward, v: dict[int, Tensor], claims: Claims, alike: Callable[[Tensor, Tensor], bool]) -> bool:
    for o, grads in claims.items():
        truths = oracle.gradients(o, v[o])
        for position, claimed in grads.items():
            truth = truths[position]
            if truth.shape != claimed.shape or not bool(torch.isfinite(truth).all()) or not alike(truth, claimed):
                return False
    return True


def _same_elements(truth: Tensor, claimed: Tensor) -> bool:
    off, either = (truth - claimed).abs(), torch.maximum(truth.abs(), claimed.abs())
    largest = float(either.max())
    # A subject that runs in its own type only has fewer digits.
    coarse = torch.finfo(truth.dtype).eps / torch.finfo(torch.float64).eps
    small = (off > min(_OF_AN_ELEMENT * coarse, 1e-2) * either) & (either > 1e-12 * largest)
    return not bool(small.any()) and float(off.max()) <= min(_OF_THE_LARGEST * coarse, 1e-2) * largest


def _nearly_same(truth: Tensor, claimed: Tensor) -> bool:
    return float((truth - claimed).abs().max()) <= GOOD_ENOUGH * float(truth.abs().max())


_OF_AN_ELEMENT, _OF_THE_LARGEST = 1e-5, 1e4 * torch.finfo(torch.float64).eps


def _confirmed(evaluate: Evaluate, probes: list[Probe], expected: dict[int, float]) -> bool:
    slopes = central(evaluate, probes, _SMALL_STEP)
    return all(abs(slope - expected[p.output]) <= _CONFIRMED * p.scale for slope, p in zip(slopes, probes))


def _agreed(evaluate: Evaluate, probes: list[Probe], expected: dict[int, float], dtype: torch.dtype) -> bool:
    """Whether slopes are what they should be, as far as a forward with few digits can tell."""
    asked = [replace(p, claimed=expected[p.output]) for p in probes]
    eps = precision(evaluate, dtype)
    tells = max(_TELLS, attainable(eps))
    return all(
        slope.error <= tells * p.scale and abs(slope.value - expected[p.output]) <= 5 * slope.error + 64 * eps * p.scale
        for slope, p in zip(slopes(evaluate, asked, dtype), asked)
    )


def _measured(evaluate: Evaluate, probes: list[Probe], expected: dict[int, float]) -> bool:
    found = at_step(evaluate, probes, _STEP, torch.finfo(torch.float64).eps)
    return all(
        slope.error <= GOOD_ENOUGH * p.scale
        and abs(slope.value - expected[p.output]) <= 10 * slope.error + FLOOR * p.scale
        for slope, p in zip(found, probes)
    )

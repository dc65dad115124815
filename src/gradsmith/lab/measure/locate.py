"""From "something is off" to one element: bisection over the elements of an input, and a careful look at the last one."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from gradsmith.lab.measure.differences import (
    NARROW,
    STEP,
    Evaluate,
    Probe,
    Slope,
    at_step,
    dot,
    one_sided,
    precision,
    slopes,
)
from gradsmith.lab.measure.gradient import Mismatch, Pair, Projection, Settings, _effective, moved, typical_size
from gradsmith.lab.pieces import BLOCK, norm_of_product
from gradsmith.lab.run import normal_like
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

_MOST_CORNERS = 24
_FARTHER = 30.0  # times the step at which both sides are measured


def confirm(
    target: Target,
    arguments: Arguments,
    settings: Settings,
    pair: Pair,
    truth: Tensor | None,
    among: Tensor | None = None,
) -> None:
    """Find the element behind a suspicion. Corners are judged by the subgradient interval and left out.

    `among` is a mask of the elements to look at, where some are known to have no slope.
    """
    generator = torch.Generator().manual_seed(settings.seed + 2)
    size = typical_size(pair.leaf.tensor)
    live = (torch.isfinite(pair.leaf.tensor.detach()) if among is None else among.clone()).contiguous()
    suspicion = pair.status
    for _ in range(_MOST_CORNERS):
        index = _largest(pair, truth, live) if truth is not None else None
        if index is None:
            u = normal_like(pair.leaf.tensor, generator).mul_(size).mul_(live)
            index = _bisect(target, arguments, settings, pair, u)
        if index is None:
            break
        verdict, mismatch = look_at(target, arguments, settings, pair, index, size)
        if verdict == "wrong":
            pair.status, pair.mismatch = suspicion, mismatch
            return
        if verdict == "right" and truth is None:
            break  # the largest disagreement there is lies below what matters
        if verdict in ("right", "unclear"):
            truth = None  # the oracle points at elements that differences do not confirm: trust it no further
        if verdict == "right":
            continue
        element = _unravel(index, pair.leaf.tensor)
        if verdict == "corner":
            pair.corners.append(element)
        live.view(-1)[index] = False
    if pair.corners and not bool(live.any()):
        pair.status = "right"
        return
    pair.status = "right" if _settled(target, arguments, settings, pair, live, generator, size) else "noisy"


def explaining_domain(target: Target, arguments: Arguments, settings: Settings, pair: Pair) -> str:
    """The words of a constrained domain that the input lies on and on which the gradient is right; empty where there is none."""
    x = pair.leaf.tensor.detach()
    for name, project in _domains(x):
        inside = replace(settings, project=project)
        if all(_agrees(target, arguments, inside, pair, seed) for seed in (11, 12)):
            return name
    return ""


def _domains(x: Tensor) -> list[tuple[str, Projection]]:
    found: list[tuple[str, Projection]] = []
    if (
        x.ndim >= 2
        and x.shape[-1] == x.shape[-2]
        and x.shape[-1] > 1
        and torch.allclose(x, x.mH, rtol=1e-9, atol=1e-12)
    ):
        found.append(("is symmetric", lambda y: (y + y.mH) / 2))
    if x.ndim and x.shape[-1] > 1 and not x.is_complex():
        sums = x.sum(-1, keepdim=True)
        if bool((x >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), rtol=1e-6):
            found.append(("has rows that sum to 1", lambda y: y / y.sum(-1, keepdim=True)))
        logs = torch.logsumexp(x, -1, keepdim=True)
        if torch.allclose(logs, torch.zeros_like(logs), atol=1e-6):
            found.append(
                (
                    "has rows of logarithms of probabilities that sum to 1",
                    lambda y: y - torch.logsumexp(y, -1, keepdim=True),
                )
            )
        norms = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        if torch.allclose(norms, torch.ones_like(norms), rtol=1e-6):
            found.append(("has rows of length 1", lambda y: y / torch.linalg.vector_norm(y, dim=-1, keepdim=True)))
    return found


def _agrees(target: Target, arguments: Arguments, settings: Settings, pair: Pair, seed: int) -> bool:
    generator = torch.Generator().manual_seed(seed)
    u = normal_like(pair.leaf.tensor, generator) * typical_size(pair.leaf.tensor)
    weight = _effective(u, pair.leaf, settings)
    natural = norm_of_product(pair.claimed, weight)
    evaluate = moved(target, arguments, pair.leaf, u, settings)
    (slope,) = slopes(
        evaluate, [Probe(pair.output, pair.v, max(natural, 1e-300), dot(pair.claimed, weight))], pair.dtype
    )
    if slope.error > 0.01 * max(natural, abs(slope.value), pair.measured):  # noise agrees with anything
        return False
    return abs(slope.value - dot(pair.claimed, weight)) <= 10 * slope.error + 1e-6 * natural


def _largest(pair: Pair, truth: Tensor, live: Tensor) -> int | None:
    if truth.shape != pair.claimed.shape:
        return None
    found, most, start = None, 0.0, 0
    flat = [t.reshape(-1).split(BLOCK) for t in (truth, pair.claimed, live)]
    for true, claimed, alive in zip(*flat):
        off = (true - claimed).abs().double() * alive
        off = torch.where(torch.isnan(off), torch.full_like(off, math.inf), off)
        if off.numel() and float(off.max()) > most:
            found, most = start + int(off.argmax()), float(off.max())
        start += off.numel()
    return found


def _bisect(target: Target, arguments: Arguments, settings: Settings, pair: Pair, u: Tensor) -> int | None:
    """Halve the set of perturbed elements, always keeping the half that disagrees more."""

    def disagreement(low: int, high: int, of: float = 0.0) -> Slope:
        part = torch.zeros_like(u)
        part.view(-1)[low:high] = u.reshape(-1)[low:high]
        claimed = dot(pair.claimed, part)
        natural = norm_of_product(pair.claimed, part)
        evaluate = moved(target, arguments, pair.leaf, part, settings)
        # What matters is how much of the whole disagreement lies here.
        probe = Probe(pair.output, pair.v, max(natural, of, 1e-300), claimed)
        eps = precision(evaluate, pair.dtype)
        # Which half it is, one step tells: an element is measured with all of them before it is called wrong.
        narrow = of and eps > NARROW
        (slope,) = at_step(evaluate, [probe], STEP, eps) if narrow else slopes(evaluate, [probe], pair.dtype)
        return Slope(slope.value - claimed, slope.error)

    u = u.contiguous()
    low, high = 0, u.numel()
    whole = disagreement(low, high)
    if not math.isfinite(whole.value) or abs(whole.value) <= 5 * whole.error:
        return None
    total = whole.value
    while high - low > 1:
        middle = (low + high) // 2
        left = disagreement(low, middle, abs(total)).value
        right = total - left
        if not math.isfinite(left):
            return None
        low, high, total = (low, middle, left) if abs(left) >= abs(right) else (middle, high, right)
    return low


def look_at(
    target: Target, arguments: Arguments, settings: Settings, pair: Pair, index: int, size: float
) -> tuple[str, Mismatch | None]:
    """Measure one element on its own: wrong, right, a corner (and inside its interval), or unclear."""
    x = pair.leaf.tensor
    worst: tuple[str, Mismatch | None] = ("right", None)
    for unit in (1.0, 1j) if x.is_complex() else (1.0,):
        e = torch.zeros_like(x.detach()).contiguous()
        e.view(-1)[index] = torch.tensor(unit * size, dtype=e.dtype)
        claimed = dot(pair.claimed, e) / size
        evaluate = moved(target, arguments, pair.leaf, e, settings)
        eps = precision(evaluate, pair.dtype)
        # What an element is called wrong by is measured with every step there is: nothing is claimed.
        probe = Probe(pair.output, pair.v, max(abs(claimed) * size, 1e-300))
        (slope,) = slopes(evaluate, [probe], pair.dtype)
        true, error = slope.value / size, slope.error / size
        step = 1e-6 if eps < NARROW else STEP
        sides, side_error = _sides(evaluate, probe, step, eps, size)
        off = abs(true - claimed)
        limit = 10 * error + 1e-6 * max(abs(true), abs(claimed))
        gap = sides[1] - sides[0]
        corner = gap > side_error + 1e-4 * max(abs(sides[0]), abs(sides[1]))
        if corner:
            # A corner stays as it is however near one looks; a bend closes, and what swings within a step does neither.
            nearer, nearer_error = _sides(evaluate, probe, step / 10, eps, size)
            lasting = (nearer[1] - nearer[0]) / gap
            if nearer_error < gap / 2:
                clear, corner = lasting < 2, lasting > 0.1
            else:  # too near for forward's precision: seen from farther away, noise closes, and a bend opens
                farther, farther_error = _sides(evaluate, probe, step * _FARTHER, eps, size)
                clear, corner = farther_error < gap / 2 and farther[1] - farther[0] < gap / 2, False
            if not clear:
                worst = ("unclear", None)
                continue
        if corner:
            inside = sides[0] - side_error <= claimed <= sides[1] + side_error
            if inside:
                worst = ("corner", None)
                continue
            true = sides[0] if claimed < sides[0] else sides[1]
            error, off, limit = side_error, abs(true - claimed), side_error
        if not math.isfinite(true) or error > 0.05 * max(abs(true), abs(claimed)):
            worst = ("unclear", None)
            continue
        if off > limit:
            element = _unravel(index, x)
            return "wrong", Mismatch(
                pair.leaf.position, pair.leaf.name, pair.output, "output", element, claimed, true, error, pair.missing
            )
    return worst


def _sides(evaluate: Evaluate, probe: Probe, step: float, eps: float, size: float) -> tuple[list[float], float]:
    """The slopes to the left and to the right per unit of the element, the smaller one first, and their error."""
    left, right = one_sided(evaluate, probe, step, eps)
    return sorted((left.value / size, right.value / size)), 4 * (left.error + right.error) / size


def _settled(
    target: Target,
    arguments: Arguments,
    settings: Settings,
    pair: Pair,
    live: Tensor,
    generator: torch.Generator,
    size: float,
) -> bool:
    """With the corners left out, does the rest agree? Noise is compared with the whole gradient: the rest may have none."""
    whole = normal_like(pair.leaf.tensor, generator) * size
    u = whole * live
    natural = float(torch.linalg.vector_norm((pair.claimed * u).abs().double()))
    evaluate = moved(target, arguments, pair.leaf, u, settings)
    (slope,) = slopes(evaluate, [Probe(pair.output, pair.v, max(natural, 1e-300))], pair.dtype)
    scale = max(float(torch.linalg.vector_norm((pair.claimed * whole).abs().double())), abs(slope.value))
    quiet = slope.value == 0 or slope.error <= 0.01 * scale
    return quiet and abs(slope.value - dot(pair.claimed, u)) <= 10 * slope.error + 1e-6 * max(natural, abs(slope.value))


def _unravel(index: int, tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(index), tensor.shape)) if tensor.ndim else ()


__all__ = ["confirm", "explaining_domain", "look_at"]

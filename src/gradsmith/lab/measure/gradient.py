"""Is the gradient right? Every (input, output) pair is held against directional differences, and where they disagree
the disagreement is traced to one element, which is then measured on its own before anything is called wrong.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from gradsmith.findings import one_line
from gradsmith.lab.explore.drawing import domains_of, within
from gradsmith.lab.measure.differences import Evaluate, Probe, Slope, dot, one_sided, slopes
from gradsmith.lab.measure.limits import allow_what_is_undone
from gradsmith.lab.measure.oracle import OwnForward, own_forward
from gradsmith.lab.pieces import BLOCK, norm_of_product, pieces, root_mean_square
from gradsmith.lab.run import Allowance, Run, Spent, forward, normal_like
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.target import Target

Projection = Callable[[Tensor], Tensor]
Status = Literal["right", "wrong", "noisy", "missing"]

_NOISE_LIMIT = 0.01  # noise wider than this share of the gradient proves nothing
FLOOR = 4e-9  # disagreement below this share of the gradient is rounding, in float64
_MOST_CORNERS = 24
_DIRECTIONS = 2
_TRACING = 128  # runs to trace a suspicion, where forward computes in its own precision and runs are dear
LEAST_RUNS = 6 * _DIRECTIONS  # of `judge`, for each input: three central differences in each direction
_REAL = {torch.complex128: torch.float64, torch.complex64: torch.float32, torch.complex32: torch.float16}


@dataclass(frozen=True)
class Mismatch:
    """One confirmed disagreement: the element, what backward said, and what is true."""

    position: int
    argument: str
    output: int
    output_name: str
    element: tuple[int, ...] | None
    claimed: float
    true: float
    error: float
    missing: bool = False  # backward returned None

    @property
    def ratio(self) -> float:
        return self.claimed / self.true if self.true else math.inf


@dataclass
class Pair:
    """What is known about the gradient of one output with respect to one input."""

    leaf: Leaf
    output: int
    v: Tensor
    claimed: Tensor
    missing: bool
    status: Status = "right"
    noise: float = 0.0
    measured: float = 0.0
    off: float = 0.0  # the largest disagreement, as a share of the gradient
    rounding: float = 0.0  # the median disagreement with the exact oracle, relative to each element
    mismatch: Mismatch | None = None
    truth: Tensor | None = None  # dense, where the exact oracle was confirmed
    explained: str = ""  # "is symmetric": the domain on which alone the gradient is right
    corners: list[tuple[int, ...]] = field(default_factory=list)
    singular: list[tuple[int, ...]] = field(default_factory=list)  # no finite slope there: not judged
    flat: bool = False  # forward did not move along any direction
    dtype: torch.dtype = torch.float64  # the precision in which it can be judged
    undone: float = 0.0  # right to within what the loops of forward left undone, as a share of the gradient

    @property
    def lost_digits(self) -> bool:
        return (1e-9 < self.off < 1e-4 and self.off > 100 * self.noise) or 1e-9 < self.rounding < 1e-4


@dataclass
class Judgement:
    """The gradient of a subject, pair by pair."""

    run: Run
    pairs: list[Pair]
    oracle: OwnForward | None

    @property
    def wrong(self) -> list[Pair]:
        return [p for p in self.pairs if p.status in ("wrong", "missing")]

    @property
    def imprecise(self) -> list[Pair]:
        """Right at every element that was looked at, and yet off by more than float64 rounding."""
        return [
            p
            for p in self.pairs
            if p.status == "right"
            and not p.corners
            and not p.singular
            and not p.explained
            and not p.undone
            and (_rounded(p) or p.lost_digits)
        ]

    @property
    def noisy(self) -> list[Pair]:
        return [p for p in self.pairs if p.status == "noisy"]


@dataclass(frozen=True)
class Settings:
    """What a user may say about how strictly to judge."""

    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    reference: Callable[..., object] | None = None
    project: Projection | None = None
    reach: float = 1.0  # how long a direction is, in typical sizes of the input
    noise: float = 0.0  # of forward in its own precision, as a share of its outputs, where it was measured
    opaque: bool = False  # forward launches kernels, of which autograd knows nothing: it sees what is left of forward
    lean: bool = False  # inputs are large: no graph is held beside other runs, and differences do without autograd


def judge(target: Target, arguments: Arguments, settings: Settings, *, until_wrong: bool = False) -> Judgement:
    """Compare every gradient the subject returns with the truth; `until_wrong` leaves out what comes after a wrong one."""
    run = forward(target, arguments, seed=settings.seed)
    generator = torch.Generator().manual_seed(settings.seed + 1)
    hidden = (settings.opaque and settings.reference is None) or settings.lean
    oracle = own_forward(target, run, settings.seed, settings.reference) if not hidden else None
    run = run.without_graph() if settings.lean else run
    pairs: list[Pair] = []
    vs = [_finite_only(run.normal(generator), run) for _ in range(_DIRECTIONS)]
    claims = [{o: claims_of(target, arguments, settings, v, o) for o in run.differentiable} for v in vs]
    for leaf in distinct(arguments.differentiable):
        found = [Pair(leaf, o, vs[0][o], *_claim(claims[0][o][leaf.position], leaf)) for o in run.differentiable]
        dtype = working_dtype(arguments, [run.outputs[o] for o in run.differentiable])
        for pair in found:
            pair.dtype = dtype
        try:
            nearer = _measured_nearby(target, arguments, settings, leaf, found, vs, claims, generator, dtype)
            for pair in found:
                _settle(target, arguments, nearer, pair, oracle, run)
        except Spent:
            if all(p.mismatch is None for p in pairs):
                raise
            break  # what is proved wrong is wrong, whatever is not known of the other inputs
        allow_what_is_undone(target, arguments, settings.seed, found)
        pairs.extend(found)
        if until_wrong and any(p.status == "wrong" for p in found):
            break
    return Judgement(run, pairs, oracle)


def claims_of(
    target: Target, arguments: Arguments, settings: Settings, v: dict[int, Tensor], output: int
) -> dict[int, Tensor | None]:
    """What backward says about one output, each time on a fresh graph: an earlier backward may have spoiled it.

    Where backward cannot bear the other outputs unused, they get explicit zeros.
    """
    try:
        return forward(target, arguments, seed=settings.seed).gradients({output: v[output]})
    except Exception:  # reported by the rule unused-output; the numbers can still be judged
        others = {o: g if o == output else g * 0 for o, g in v.items()}
        return forward(target, arguments, seed=settings.seed).gradients(others)


class NotNearby(Exception):
    """Forward takes the inputs, and not what lies beside them, so that nothing can be measured."""


def moved(target: Target, arguments: Arguments, leaf: Leaf, u: Tensor, settings: Settings) -> Evaluate:
    """t -> the outputs at x + t u (projected back onto the domain, if there is one)."""
    return moved_together(target, arguments, [(leaf, u)], settings)


def moved_together(
    target: Target, arguments: Arguments, directions: Sequence[tuple[Leaf, Tensor]], settings: Settings
) -> Evaluate:
    """t -> the outputs where every one of these inputs has moved by t along its direction."""
    names = " and ".join(f"'{leaf.name}'" for leaf, _ in directions)

    def evaluate(t: float) -> list[Tensor]:
        tensors: dict[int, Tensor] = {}
        made: set[int] = set()
        for leaf, u in directions:
            base = leaf.tensor.detach()
            x = torch.add(base, u, alpha=t) if t and base.dtype == u.dtype else base + t * u if t else base.clone()
            x = settings.project(x) if settings.project is not None else x
            if x.numel() > BLOCK and settings.project is None and x.stride() == base.stride():
                made.add(id(x))
            tensors.update({other.position: x for other in arguments.leaves if other.tensor is leaf.tensor})
        try:
            with torch.no_grad():
                there = arguments.replaced(tensors)
                del tensors, x
                outputs = forward(target, there, seed=settings.seed, plain=True, spare=made).outputs
        except Exception as error:
            # It ran on the inputs themselves: their values are indices, labels, or on the edge of what it takes.
            raise NotNearby(f"forward raises a step away from {names}: {one_line(error)}") from error
        # Copies: a forward that writes its result into a buffer of its own would be compared with itself.
        return [
            o.detach().to(torch.complex128 if o.is_complex() else torch.float64, copy=True)
            if o.numel() <= BLOCK or not o.is_floating_point()
            else o.detach()
            for o in outputs
        ]

    evaluate.noise = settings.noise  # type: ignore[attr-defined]
    return evaluate


def typical_size(x: Tensor) -> float:
    """The root mean square of the finite elements, 1 where they are all zero."""
    size = root_mean_square(x)
    return size if size > 1e-30 else 1.0


def working_dtype(arguments: Arguments, outputs: list[Tensor]) -> torch.dtype:
    """The precision the numbers really have: the narrowest of what goes in and what comes out."""
    kinds = [x.tensor.dtype for x in arguments.differentiable] + [o.dtype for o in outputs]
    real = [_REAL.get(k, k) for k in kinds]
    return max((k for k in real if k.is_floating_point), key=lambda k: torch.finfo(k).eps, default=torch.float64)


def _measured_nearby(
    target: Target,
    arguments: Arguments,
    settings: Settings,
    leaf: Leaf,
    pairs: list[Pair],
    vs: list[dict[int, Tensor]],
    claims: list[dict[int, dict[int, Tensor | None]]],
    generator: torch.Generator,
    dtype: torch.dtype,
) -> Settings:
    """The directional test, and the settings under which forward could be run beside the inputs.

    A forward that asserts its domain (positive, symmetric) takes shorter steps, or steps that stay in the domains in which the
    input lies.
    """
    state = generator.get_state()
    held = domains_of(leaf.tensor.detach(), differentiable=leaf.differentiable)
    tries = [settings, replace(settings, reach=1e-3 * settings.reach)]
    if settings.project is None and held:
        tries.append(replace(settings, project=lambda x: within(held, x).to(x), reach=1e-2 * settings.reach))
    for number, attempt in enumerate(tries):
        generator.set_state(state)
        try:
            _measure_pairs(target, arguments, attempt, leaf, pairs, vs, claims, generator, dtype)
        except NotNearby:
            if number + 1 == len(tries):
                raise
            continue
        return attempt
    return settings


def _measure_pairs(
    target: Target,
    arguments: Arguments,
    settings: Settings,
    leaf: Leaf,
    pairs: list[Pair],
    vs: list[dict[int, Tensor]],
    claims: list[dict[int, dict[int, Tensor | None]]],
    generator: torch.Generator,
    dtype: torch.dtype,
) -> None:
    """Directional test of one input against every output, in several directions."""
    size = typical_size(leaf.tensor)
    still = [True] * len(pairs)
    for v, claim in zip(vs, claims):
        u = normal_like(leaf.tensor, generator).mul_(size * settings.reach)
        for x, along in pieces(leaf.tensor.detach(), u):
            along[~torch.isfinite(x)] = 0
        evaluate = moved(target, arguments, leaf, u, settings)
        weight = _effective(u, leaf, settings)
        grads = [_claim(claim[p.output][leaf.position], leaf)[0] for p in pairs]
        natural = [norm_of_product(g, weight) for g in grads]
        wide = [w if (w := v[p.output]).is_complex() or w.numel() > BLOCK else w.double() for p in pairs]
        probes = [Probe(p.output, w, max(s, 1e-300), dot(g, weight)) for p, w, s, g in zip(pairs, wide, natural, grads)]
        for k, (pair, slope) in enumerate(zip(pairs, slopes(evaluate, probes, dtype))):
            claimed = dot(grads[k], weight)
            scale = max(natural[k], abs(slope.value) if math.isfinite(slope.value) else 0.0)
            off = abs(slope.value - claimed)
            quiet = slope.value == 0 or slope.error <= 1e-3 * scale  # noise is not stillness
            still[k] = still[k] and quiet and abs(slope.value) <= 10 * slope.error
            pair.noise = max(pair.noise, slope.error / scale if scale else 0.0)
            pair.measured = max(pair.measured, abs(slope.value))
            pair.off = max(pair.off, off / scale if scale and math.isfinite(off) else 0.0)
            if not math.isfinite(slope.value):
                pair.status = "noisy"
            elif off > _tolerance(slope, scale, dtype, settings):
                pair.status = "missing" if pair.missing else "wrong"
            elif slope.error > _NOISE_LIMIT * scale and scale > 0 and pair.status == "right":
                pair.status = "noisy"
    for pair, flat in zip(pairs, still):
        pair.flat = flat


def _tolerance(slope: Slope, scale: float, dtype: torch.dtype, settings: Settings) -> float:
    floor = FLOOR if dtype == torch.float64 else 64 * torch.finfo(dtype).eps
    floor = max(floor, 64 * settings.noise)
    return 10 * slope.error + max(floor, settings.rtol or 0.0) * scale + (settings.atol or 0.0)


def _settle(
    target: Target, arguments: Arguments, settings: Settings, pair: Pair, oracle: OwnForward | None, run: Run
) -> None:
    """Turn a suspicion into a confirmed element, a domain that explains it, or noise; and let the exact oracle have its say."""
    from gradsmith.lab.measure.locate import confirm, explaining_domain
    from gradsmith.lab.measure.singular import without_singular_points

    if settings.lean and pair.status in ("wrong", "missing") and (settings.reference or not settings.opaque):
        oracle = own_forward(target, run, settings.seed, settings.reference)
    # An output without a graph, that moves all the same, was computed where autograd does not look: in a kernel, in NumPy.
    sees = oracle is not None and (oracle.outputs[pair.output].requires_grad or pair.flat)
    truth = oracle.gradients(pair.output, pair.v)[pair.leaf.position] if oracle is not None and sees else None
    if settings.lean:
        oracle = None  # its graph is not held while forward runs again
    if pair.status in ("wrong", "missing"):
        # A suspicion that several directions raise is followed, whatever the judgement has cost so far.
        with Allowance(_TRACING, reserved=True) if settings.noise else contextlib.nullcontext():
            domain = explaining_domain(target, arguments, settings, pair)
            if domain:
                pair.status, pair.explained = "right", domain
                return
            confirm(target, arguments, settings, pair, truth)
        if pair.mismatch is not None:
            pair.mismatch = _named(pair.mismatch, run)
    elif truth is not None and torch.isfinite(truth).all():
        _exact(pair, truth, settings)
        _small_elements(target, arguments, settings, pair, truth, run)
    if pair.status == "noisy":
        without_singular_points(target, arguments, settings, pair)
        if pair.mismatch is not None:
            pair.mismatch = _named(pair.mismatch, run)


def compare_exactly(
    pair: Pair, oracle: OwnForward, target: Target, arguments: Arguments, settings: Settings, run: Run
) -> None:
    """What the exact oracle has to say of a gradient that differences have confirmed as a whole."""
    truth = oracle.gradients(pair.output, pair.v)[pair.leaf.position]
    _exact(pair, truth, settings)
    _small_elements(target, arguments, settings, pair, truth, run)


def _exact(pair: Pair, truth: Tensor, settings: Settings) -> None:
    """Element-wise comparison with the user's own forward under autograd; it rescues noisy pairs, too."""
    dtype = working_dtype_of(pair.claimed)
    size = float(truth.abs().max()) if truth.numel() else 0.0
    tight = max(1e4 * torch.finfo(dtype).eps, settings.rtol or 0.0) * size + (settings.atol or 0.0)
    if truth.shape != pair.claimed.shape:
        return
    off = (truth - pair.claimed).abs()
    if bool((off <= tight).all()):
        pair.truth = truth
        if pair.status == "noisy":
            pair.status = "right"
    elif bool((off > 0).any()) and dtype == torch.float64:
        # The median: a formula that cancels loses digits at a few elements, a narrower type at all of them.
        pair.rounding = float((off / truth.abs().clamp(min=1e-6 * size))[truth != 0].double().median())


def _small_elements(
    target: Target, arguments: Arguments, settings: Settings, pair: Pair, truth: Tensor, run: Run
) -> None:
    """Elements too small to show among large ones: where the exact oracle objects, the element is measured on its own."""
    from gradsmith.lab.measure.locate import look_at

    if pair.status != "right" or pair.missing or pair.explained or truth.shape != pair.claimed.shape:
        return
    if settings.project is not None:  # on a domain no element moves alone
        return
    off = (truth - pair.claimed).abs().double()
    either = torch.maximum(truth.abs(), pair.claimed.abs()).double()
    limit = max(1e-5, settings.rtol or 0.0)
    strange = (off > limit * either) & (either > 1e-12 * float(either.max()) if either.numel() else off > 0)
    if not bool(strange.any()):
        return
    index = int((off * strange).argmax())
    verdict, mismatch = look_at(target, arguments, settings, pair, index, typical_size(pair.leaf.tensor))
    if verdict == "wrong" and mismatch is not None and _says_so_too(mismatch, truth.flatten()[index]):
        pair.status, pair.mismatch = "wrong", _named(mismatch, run)


def _says_so_too(measured: Mismatch, exact: Tensor) -> bool:
    """Whether the element as measured is nearer to what autograd says than to what backward does. Where forward moves in
    small jumps (a bisection), differences of so small an element measure the jumps."""
    return exact.is_complex() or abs(measured.true - float(exact)) <= 0.5 * abs(measured.claimed - float(exact))


def _rounded(pair: Pair) -> bool:
    """Every number of a float64 gradient fits float32, though grad_output's do not: it has been through float32."""
    claimed, v = pair.claimed, pair.v
    if claimed.dtype != torch.float64 or int((claimed != 0).sum()) < 3:
        return False
    return torch.equal(claimed.float().double(), claimed) and not torch.equal(v.float().double(), v)


def working_dtype_of(tensor: Tensor) -> torch.dtype:
    return _REAL.get(tensor.dtype, tensor.dtype)


def _effective(u: Tensor, leaf: Leaf, settings: Settings) -> Tensor:
    """The direction in which a projected input really moves."""
    if settings.project is None:
        return u
    x, h = leaf.tensor.detach(), 1e-5
    return (settings.project(x + h * u) - settings.project(x - h * u)) / (2 * h)


def _claim(grad: Tensor | None, leaf: Leaf) -> tuple[Tensor, bool]:
    if grad is None:
        return torch.zeros_like(leaf.tensor.detach()), True
    return grad.detach(), False


def _finite_only(v: dict[int, Tensor], run: Run) -> dict[int, Tensor]:
    for o, g in v.items():
        for out, part in pieces(run.outputs[o].detach(), g):
            part[~torch.isfinite(out)] = 0
    return v


def distinct(leaves: list[Leaf]) -> list[Leaf]:
    """A tensor passed twice has one gradient: judge it once, under its first name."""
    seen: dict[int, Leaf] = {}
    for leaf in leaves:
        seen.setdefault(id(leaf.tensor), leaf)
    return list(seen.values())


def _named(mismatch: Mismatch, run: Run) -> Mismatch:
    from dataclasses import replace

    return replace(mismatch, output_name=run.output_names[mismatch.output])


__all__ = ["Judgement", "Mismatch", "Pair", "Settings", "judge", "moved", "one_sided", "typical_size"]

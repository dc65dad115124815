"""Points at which forward has no finite slope: the square root at 0, the edge of a domain.

One such element drowns the directional test of a whole input in noise. It is found by halving, looked at from both sides, and
left out; the others are judged as ever.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradsmith.lab.measure.differences import Evaluate, Probe, Slope, dot, slopes
from gradsmith.lab.measure.gradient import Pair, Settings, moved, typical_size
from gradsmith.lab.measure.locate import confirm
from gradsmith.lab.run import normal_like
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

_MOST = 12
_LIMIT = 0.01  # noise wider than this share of the gradient proves nothing
_STEPS = (1e-10, 1e-8, 1e-6)


def without_singular_points(target: Target, arguments: Arguments, settings: Settings, pair: Pair) -> None:
    """Judge a noisy pair by its other elements, where the noise comes from a few singular ones."""
    x = pair.leaf.tensor.detach()
    if x.is_complex() or x.dtype != torch.float64 or x.numel() < 2:
        return
    generator = torch.Generator().manual_seed(settings.seed + 3)
    live = torch.isfinite(x).contiguous()
    for _ in range(_MOST):
        u = normal_like(x, generator) * typical_size(x) * live
        index = _noisiest(target, arguments, settings, pair, u.contiguous())
        if index is None or not _is_singular(target, arguments, settings, pair, index):
            return
        live.view(-1)[index] = False
        if not bool(live.any()):
            return
        pair.singular.append(tuple(int(i) for i in torch.unravel_index(torch.tensor(index), x.shape)))
        u = normal_like(x, generator) * typical_size(x) * live
        slope, scale = _measured(target, arguments, settings, pair, u)
        if slope.error <= _LIMIT * scale:
            pair.status = "right"
            if abs(slope.value - dot(pair.claimed, u)) > 10 * slope.error + 1e-6 * scale:
                pair.status = "missing" if pair.missing else "wrong"
                confirm(target, arguments, settings, pair, None, live)
            return


def _measured(target: Target, arguments: Arguments, settings: Settings, pair: Pair, u: Tensor) -> tuple[Slope, float]:
    natural = float(torch.linalg.vector_norm((pair.claimed * u)[u != 0].abs().double()))
    evaluate = moved(target, arguments, pair.leaf, u, settings)
    (slope,) = slopes(evaluate, [Probe(pair.output, pair.v, max(natural, 1e-300))], pair.dtype)
    return slope, max(natural, abs(slope.value) if math.isfinite(slope.value) else 0.0)


def _noisiest(target: Target, arguments: Arguments, settings: Settings, pair: Pair, u: Tensor) -> int | None:
    """The element behind the noise, by halving; None where both halves are noisy, which no single element makes."""
    low, high = 0, u.numel()
    while high - low > 1:
        middle = (low + high) // 2
        noisy = []
        for start, end in ((low, middle), (middle, high)):
            part = torch.zeros_like(u)
            part.view(-1)[start:end] = u.view(-1)[start:end]
            slope, scale = _measured(target, arguments, settings, pair, part)
            noisy.append(math.inf if not math.isfinite(slope.error) else slope.error / scale if scale else 0.0)
        if max(noisy) <= _LIMIT:
            return None
        low, high = (low, middle) if noisy[0] >= noisy[1] else (middle, high)
    return low


def _is_singular(target: Target, arguments: Arguments, settings: Settings, pair: Pair, index: int) -> bool:
    """From one side at least, the slope grows without bound as the step shrinks, or there is no finite value at all."""
    x = pair.leaf.tensor.detach()
    e = torch.zeros_like(x).contiguous()
    e.view(-1)[index] = typical_size(x)
    evaluate = moved(target, arguments, pair.leaf, e, settings)
    return any(_grows(evaluate, pair, sign) for sign in (-1.0, 1.0))


def _grows(evaluate: Evaluate, pair: Pair, sign: float) -> bool:
    base = evaluate(0.0)[pair.output]
    near, middle, far = (abs(dot(pair.v, evaluate(sign * step)[pair.output] - base) / step) for step in _STEPS)
    # Twice: a slope that is merely steep stops growing.
    return not math.isfinite(near) or near > 3 * middle > 9 * far > 0

"""Does a wrong gradient look like one that was meant to differ from the derivative?"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsmith.lab.gradient import Judgement, Pair, Settings, moved, typical_size
from gradsmith.lab.run import normal_like


def surrogate_kind(judgement: Judgement, settings: Settings) -> str | None:
    """The kind of surrogate that every wrong pair resembles: forward locally constant, or the identity."""
    kinds = {_kind(judgement, settings, pair) for pair in judgement.wrong}
    if len(kinds) != 1:
        return None
    return kinds.pop()


def _kind(judgement: Judgement, settings: Settings, pair: Pair) -> str | None:
    if pair.missing:
        return "stop" if _is_identity(judgement, settings, pair) else None
    if pair.flat:
        return "straight-through"
    if not _is_identity(judgement, settings, pair):
        return None
    return _of_identity(pair.claimed, pair.v)


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

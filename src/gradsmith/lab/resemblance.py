"""Does a wrong gradient look like one that was meant to differ from the derivative?"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsmith.lab.gradient import Judgement, Pair


def surrogate_kind(judgement: Judgement) -> str | None:
    """The kind of surrogate that every wrong pair resembles: forward locally constant, or the identity."""
    kinds = {_kind(judgement, pair) for pair in judgement.wrong}
    if len(kinds) != 1:
        return None
    return kinds.pop()


def _kind(judgement: Judgement, pair: Pair) -> str | None:
    if pair.missing:
        return "stop" if _is_identity(judgement, pair) else None
    if pair.flat:
        return "straight-through"
    if not _is_identity(judgement, pair):
        return None
    return _of_identity(pair.claimed, pair.v)


def _is_identity(judgement: Judgement, pair: Pair) -> bool:
    output, given = judgement.run.outputs[pair.output].detach(), pair.leaf.tensor.detach()
    return output.shape == given.shape and bool(torch.equal(output, given.to(output.dtype)))


def _of_identity(claimed: Tensor, v: Tensor) -> str:
    ratio = claimed / v
    if torch.allclose(ratio, ratio.flatten()[:1].expand_as(ratio.flatten()).view_as(ratio), rtol=1e-6):
        return "reversal" if float(ratio.flatten()[0].real) < 0 else "scale"
    same = torch.isclose(claimed, v)
    return "clip" if bool(same.any()) and not bool((claimed == 0).any()) else "custom"

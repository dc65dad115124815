"""backward returns a gradient whose shape does not fit its input.

What it finds
-------------
The raw return values of backward are compared with the inputs of forward, before autograd changes them. A gradient
must have the shape of its input (or one that sums down to it).

Why it matters
--------------
PyTorch raises "returned an invalid gradient at index i", which counts positions, not names, and only once somebody
trains. This rule names the input, both shapes and the usual remedy.

Known problems
--------------
None known.

References
----------
https://github.com/nerfstudio-project/gsplat/issues/76, https://github.com/huawei-noah/AdderNet/issues/21
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.lab.measure.raw import RawPair

CODE = "GS113"
SEVERITY = "error"
OUTCOME = "shape"
DEMONSTRATION = "run"
EXPLAINS = ("backward-raised",)
BAD = """
import torch


class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / x.numel()


gradsmith_inputs = {"Mean": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("grad_output / x.numel()", "(grad_output / x.numel()).expand_as(x)")


def probe(lab: Lab) -> Iterator[Finding]:
    from torch import Tensor

    from gradsmith.lab.measure.raw import raw_pairs

    pairs = list(raw_pairs(lab))
    for pair in pairs:
        given, returned = pair.given, pair.returned
        if not isinstance(returned, Tensor) or not isinstance(given, Tensor) or not pair.needed:
            continue
        if not _sums_down(returned.shape, given.shape):
            yield lab.finding(
                f"{pair.function}.backward returns a gradient of shape {tuple(returned.shape)} for '{pair.name}', which has "
                f"shape {tuple(given.shape)}.",
                function=pair.function,
                argument=pair.name,
                advice=_order(pair, pairs) or _remedy(tuple(returned.shape), tuple(given.shape), pair.name),
                at="gradient",
                evidence={"returned": list(returned.shape), "expected": list(given.shape)},
            )


def _order(pair: RawPair, pairs: Sequence[RawPair]) -> str:
    """The remedy where two gradients stand in each other's place."""
    for other in pairs:
        crossed = ((pair.returned, other.given), (other.returned, pair.given))
        shapes = [tuple(getattr(tensor, "shape", ())) for both in crossed for tensor in both]
        if other.function == pair.function and other is not pair and shapes[0] == shapes[1] and shapes[2] == shapes[3]:
            return (
                f"The gradients of '{pair.name}' and '{other.name}' have each other's shapes: return them in the order of "
                "forward's inputs."
            )
    return ""


def _sums_down(returned: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """The engine sums a gradient over dimensions along which the input was broadcast."""
    if len(returned) < len(expected):
        return False
    tail = returned[len(returned) - len(expected) :]
    return all(a == b or b == 1 for a, b in zip(tail, expected))


def _remedy(returned: tuple[int, ...], expected: tuple[int, ...], name: str) -> str:
    if tuple(reversed(returned)) == expected:
        return "The shapes are each other's transpose: return the transposed gradient."
    if len(returned) < len(expected):
        return f"Expand it: `.expand_as({name})`, or unsqueeze the reduced dimension before multiplying."
    return f"Sum over the dimensions that '{name}' does not have: `.sum_to_size({name}.shape)`."

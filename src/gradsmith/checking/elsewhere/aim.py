"""Does a gradient that is wrong on a guess try to be the derivative of forward at all?

Relevance that is shared out, a gradient in other coordinates than those of the input, an identity put in the place of a
layer: such a backward agrees with the derivative nowhere. A mistake seldom does that. It leaves other inputs, or other
elements, right, or it has a cause that can be named. So a gradient that is right nowhere, and for no reason that was found,
is a question to its author and no accusation; and so is one that does not look at the inputs, where the derivative does.
"""

from __future__ import annotations

from typing import Any

import torch

from gradsmith.checking.elsewhere.solvers import line
from gradsmith.checking.elsewhere.structure import Elsewhere, is_right, off_by_a_factor
from gradsmith.diagnosis.truth import dense_truth
from gradsmith.lab import Lab, Pair
from gradsmith.lab.measure.gradient import Settings
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target

_AGREES = 1e-5
_ROUNDING = 1e-9
_COUNTS = 1e-3  # of the largest element: smaller ones agree with anything


def without_aim(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int, *, named: bool
) -> Elsewhere | None:
    """A doubt, where no gradient agrees with the derivative at any element; `named` means that a cause was found.

    With a cause there is a doubt only where backward gives the same for other values of the inputs, and the derivative
    does not.
    """
    try:
        lab = Lab(target, Arguments.of(args, kwargs, target.names), Settings(seed=seed))
        pairs = [p for p in lab.gradient.pairs if bool((p.claimed != 0).any())]
        wrong = [p for p in pairs if p.status == "wrong"]
        if not wrong or any(_nothing(lab, pair) for pair in wrong):
            return None
        if all(_blind(lab, pair, seed) for pair in wrong):
            return Elsewhere(
                args,
                "backward does not look at the values of the inputs, as one would that means another gradient",
                False,
            )
        if named or any(p.status == "right" for p in pairs) or any(_agrees_somewhere(lab, p) for p in wrong):
            return None
        if _right_for_another_number(target, args, kwargs, seed):
            return None
        if any(off_by_a_factor(target, other, kwargs, seed) for other in (args, tuple(map(line, args)))):
            return None
    except Exception:  # user code on values it was not asked about
        return None
    return Elsewhere(
        args, "the gradient agrees with the derivative of forward nowhere, as if something else were meant", False
    )


def where_every_element_is_read(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """The same inputs without the elements that forward never reads, if every gradient is right then.

    Whoever takes pairs of numbers reads two of the four that a guess has in a row.
    """
    try:
        lab = Lab(target, Arguments.of(args, kwargs, target.names), Settings(seed=seed))
        wrong = [p for p in lab.gradient.pairs if p.status == "wrong"]
        for i, value in enumerate(args):
            mine = [p for p in wrong if p.leaf.tensor is value]
            if not mine or (read := _read(lab, mine)) is None or read.shape == value.shape:
                continue
            other = tuple(read if k == i else a for k, a in enumerate(args))
            if is_right(target, other, kwargs, seed):
                return Elsewhere(
                    other, f"forward reads a part of {_shape(value)} alone, and on {_shape(read)} it is right"
                )
    except Exception:  # user code on values it was not asked about
        return None
    return None


def _read(lab: Lab, pairs: list[Pair]) -> torch.Tensor | None:
    """A tensor without the rows and columns on which no output depends; None where that is not known."""
    depends: torch.Tensor | None = None
    for pair in pairs:
        measured = dense_truth(lab, pair, pair.v)
        if measured is None:
            return None
        truth = measured[0] != 0
        depends = truth if depends is None else depends | truth
    assert depends is not None
    read = pairs[0].leaf.tensor.detach()
    for dim in range(read.ndim):
        others = [d for d in range(read.ndim) if d != dim]
        kept = depends.any(dim=others) if others else depends
        read = read.index_select(dim, kept.nonzero().flatten().to(read.device))
    return read.clone().requires_grad_()


def _shape(tensor: torch.Tensor) -> str:
    return repr(tuple(tensor.shape))


def _right_for_another_number(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> bool:
    """Whether an exponent or a temperature beside the data, of another value, makes every gradient right: that is aimed at."""
    numbers = [i for i, a in enumerate(args) if isinstance(a, float)]
    others = (tuple(n if k == i else a for k, a in enumerate(args)) for i in numbers for n in (1.5, 2.5))
    return any(is_right(target, other, kwargs, seed) for other in others)


def _agrees_somewhere(lab: Lab, pair: Pair) -> bool:
    measured = dense_truth(lab, pair, pair.v)
    if measured is None:
        return False
    truth, known = measured
    scale = float(truth.abs().max())
    close = (pair.claimed.to(truth.dtype) - truth).abs() <= _AGREES * truth.abs()
    return bool((close & known & (truth.abs() > _COUNTS * scale)).any())


def _nothing(lab: Lab, pair: Pair) -> bool:
    """Whether a gradient is rounding beside the derivative: whoever returns nothing means nothing else by it."""
    measured = dense_truth(lab, pair, pair.v)
    return measured is not None and float(pair.claimed.abs().max()) <= _ROUNDING * float(measured[0].abs().max())


def _blind(lab: Lab, pair: Pair, seed: int) -> bool:
    """Whether backward gives the same for other values of the same shapes, where the derivative is another one."""
    generator = torch.Generator().manual_seed(seed + 5)
    tensors = {leaf.position: leaf.tensor for leaf in lab.arguments.differentiable}
    other = {
        place: (t.detach() * (1 + 0.3 * torch.rand(t.shape, generator=generator).to(t))).requires_grad_()
        for place, t in tensors.items()
    }
    moved = Lab(lab.target, lab.arguments.replaced(other), lab.settings)
    (run, there) = (moved.precise_run(), dense_truth(moved, _same(moved, pair), pair.v))
    here = dense_truth(lab, pair, pair.v)
    claimed = run.gradients({pair.output: pair.v})[pair.leaf.position]
    if claimed is None or there is None or here is None or claimed.shape != pair.claimed.shape:
        return False
    same = torch.allclose(claimed.to(pair.claimed), pair.claimed, rtol=1e-9, atol=1e-9 * float(pair.claimed.abs().max()))
    return same and not torch.allclose(there[0], here[0], rtol=1e-4)


def _same(lab: Lab, pair: Pair) -> Pair:
    """The pair of the same input and output on another example."""
    return next(p for p in lab.gradient.pairs if (p.leaf.position, p.output) == (pair.leaf.position, pair.output))

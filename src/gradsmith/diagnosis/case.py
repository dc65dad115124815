"""A wrong gradient on the table: what backward claims, what is true, and everything a hypothesis may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gradsmith.diagnosis.truth import dense_truth
from gradsmith.lab import Lab, Pair
from gradsmith.lab.explore.move import applied
from gradsmith.lab.explore.moves.values import Redraw
from gradsmith.lab.measure.values import finite
from gradsmith.lab.once import once

_SHOWN = 24  # rows and columns of a gradient that is drawn


@dataclass(frozen=True)
class Fit:
    """A cause that explains the numbers: the half sentence for the message, and what to write instead."""

    words: str
    advice: str
    cause: str = ""
    line: int | None = None
    path: str | None = None  # where the line is not one of the subject's own file
    partly_right: bool = False  # right at elements where it is not 0, so that the derivative is meant
    leaves_out: bool = False  # right without something that its author wrote, which is seldom a slip

    def named(self, cause: str) -> Fit:
        return replace(self, cause=self.cause or cause)


@dataclass
class Case:
    """`claimed` and `truth` have the shape of the input; `known` marks the elements whose truth was measured."""

    lab: Lab
    pair: Pair
    claimed: Tensor
    truth: Tensor
    known: Tensor
    siblings: dict[str, Tensor] = field(default_factory=dict)
    own: Lab | None = None  # the user's own example, where this case was found by exploring
    rtol: float = 1e-6  # of the largest element: what counts as equal

    @cached_property
    def another(self) -> Case | None:
        """The same gradient at another example: the user's own, or other values. None where there is none to be had."""
        lab = self.own or with_other_values(self.lab)
        if lab is None:
            return None
        position, output = self.pair.leaf.position, self.pair.output
        pairs = [p for p in lab.gradient.pairs if p.leaf.position == position and p.output == output]
        return case_of(lab, pairs[0]) if pairs and not pairs[0].missing else None

    def side_by_side(self, element: Sequence[int] | None) -> dict[str, Any]:
        """Both gradients around an element, as matrices, for a report that draws them; what was not measured is nan."""
        truth, claimed = self.truth.detach().clone(), self.claimed.detach()
        if truth.shape != claimed.shape or truth.is_complex() or not truth.dim() or not truth.numel():
            return {}
        truth[~self.known] = float("nan")
        columns = truth.shape[-1]
        index = 0
        for size, at in zip(truth.shape, element or (0,) * truth.dim()):
            index = index * size + at
        top, left = max(0, index // columns - _SHOWN // 2), max(0, index % columns - _SHOWN // 2)
        window = (slice(top, top + _SHOWN), slice(left, left + _SHOWN))
        return {
            "gradients": {
                "claimed": claimed.reshape(-1, columns)[window].tolist(),
                "true": truth.reshape(-1, columns)[window].tolist(),
                "top": top,
                "left": left,
                "wrong": [index // columns, index % columns] if element is not None else None,
                "shape": list(truth.shape),
            }
        }

    @property
    def name(self) -> str:
        return self.pair.leaf.name

    @property
    def x(self) -> Tensor:
        return self.pair.leaf.tensor.detach()

    @property
    def v(self) -> Tensor:
        return self.pair.v

    @property
    def output(self) -> Tensor:
        return self.lab.gradient.run.outputs[self.pair.output].detach()

    @cached_property
    def scale(self) -> float:
        return float(self.truth[self.known].abs().max()) if bool(self.known.any()) else 0.0

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """Every floating input by name."""
        leaves = self.lab.gradient.run.arguments.leaves
        return {leaf.name: leaf.tensor.detach() for leaf in leaves if leaf.tensor.is_floating_point()}

    @cached_property
    def elementwise(self) -> bool:
        """Input and output have one shape, as element-wise functions have."""
        return self.x.shape == self.output.shape

    def explains(self, guess: Tensor) -> bool:
        """Is this tensor the truth, where the truth is known?"""
        if guess.shape != self.truth.shape or not bool(self.known.any()):
            return False
        off = (guess - self.truth)[self.known].abs()
        return bool(off.max() <= self.rtol * max(self.scale, 1e-300))

    def matches(self, a: Tensor, b: Tensor) -> bool:
        """Are two tensors equal at the known elements?"""
        if a.shape != b.shape:
            return False
        size = max(float(b[self.known].abs().max()), 1e-300)
        return bool((a - b)[self.known].abs().max() <= self.rtol * size)

    @property
    def only_where_flat(self) -> bool:
        """Whether the gradient is right wherever forward moves, and differs only where it does not: beyond a clamp.

        A finite slope there may be meant, so that what lies there can come back: a leaky gradient, a clamp passed through.
        """
        if self.claimed.shape != self.truth.shape or not bool(self.known.any()):
            return False
        flat = self.truth[self.known] == 0
        off = (self.claimed - self.truth)[self.known].abs() > self.rtol * max(self.scale, 1e-300)
        return bool(off.any()) and bool(flat[off].all()) and not bool(flat.all())

    def truth_for(self, v: Tensor) -> Tensor | None:
        """The true gradient for another grad_output, at the same elements."""
        measured = dense_truth(self.lab, self.pair, v)
        return measured.values if measured is not None else None

    def claimed_for(self, v: Tensor) -> Tensor | None:
        """What backward says for another grad_output."""
        grad = self.lab.gradients({self.pair.output: v})[self.pair.leaf.position]
        return grad.detach().to(self.truth.dtype) if grad is not None else None


@once
def with_other_values(lab: Lab) -> Lab | None:
    """The example with every floating input drawn anew from its domain; None where forward does not accept it."""
    target, arguments = lab.precise
    redraws = [Redraw(leaf.name, leaf.position) for leaf in arguments.leaves if leaf.tensor.is_floating_point()]
    changed = applied(redraws, arguments, lab.settings.seed + 1)
    if changed is None:
        return None
    other = Lab(target, changed, lab.settings, lab.level, isolated=lab.isolated)
    try:
        outputs = other.gradient.run.outputs
    except Exception:  # forward may refuse other values in any way
        return None
    return other if all(finite(out.detach()) for out in outputs) else None


def case_of(lab: Lab, pair: Pair, own: Lab | None = None) -> Case | None:
    """The case behind a wrong pair, or None where the truth cannot be had element by element."""
    measured = dense_truth(lab, pair, pair.v)
    if measured is None:
        return None
    truth, known = measured.values, measured.known
    claimed = pair.claimed.to(truth.dtype)
    if not bool(known.any()) or not bool(torch.isfinite(claimed[known]).all()):
        return None
    siblings = {
        p.leaf.name: p.claimed.to(truth.dtype) for p in lab.gradient.pairs if p.output == pair.output and p is not pair
    }
    return Case(lab, pair, claimed, truth, known, siblings, own, max(1e-6, 4 * measured.error))

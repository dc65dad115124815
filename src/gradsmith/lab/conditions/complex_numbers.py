"""Complex inputs where forward takes them: the gradient has to be PyTorch's, the conjugate of the derivative.

A real example does not say what its author meant for complex numbers, so this is a column of the matrix before it is a
finding.
"""

from __future__ import annotations

import re
import warnings

import torch

from gradsmith.lab.conditions.outcome import Outcome, State, column, examinable
from gradsmith.lab.explore.trial import judged_at, worth_exploring
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.oracle import own_forward
from gradsmith.lab.run import forward, normal_like
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import foreign
from gradsmith.source.loaded import text_of

_MENTIONED = re.compile(
    r"conj|[cC]omplex|COMPLEX|fft|view_as_real|\bc(?:float|double)\b|\d[jJ]\b|\.imag\b|\.mH\b|\.H\b"
)


@column("complex")
def complex_numbers(lab: Lab) -> Outcome:
    """The same subject on the same numbers with imaginary parts."""
    if reason := examinable(lab) or _unfit(lab):
        return Outcome("not tried", reason)
    if any(leaf.tensor.is_complex() for leaf in lab.arguments.differentiable):
        return Outcome("works")  # the example itself is complex, and its gradient was judged
    tried = with_imaginary_parts(lab)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "casting complex values to real discards": the gradient then does so, too
        found = judged_at(lab, lab.precise[0], tried)
    if found.status == "rejected":
        return Outcome("not supported", f"forward raises {found.detail}")
    # Where nobody speaks of complex numbers, that forward takes them is an accident, and the gradient is for reals.
    spoilt: State = "fails" if meant(lab) else "not supported"
    if found.status == "raises":
        return Outcome(spoilt, f"backward raises {found.detail}", "backward")
    if found.mismatch is None:
        right = found.status == "right"
        return Outcome("works") if right else Outcome("not tried", found.detail or "its gradient cannot be judged")
    name = found.mismatch.argument
    said = f"the gradient of '{name}' " + ("lacks a conj()" if lacks_conj(lab, tried, name) else "is wrong")
    return Outcome(spoilt, said, said)


def with_imaginary_parts(lab: Lab) -> Arguments:
    """Every input that has a gradient, with imaginary parts of its own size."""
    arguments = lab.precise[1]
    tensors = {}
    for leaf in arguments.differentiable:
        x = leaf.tensor.detach()
        imaginary = normal_like(x, lab.generator(41 + leaf.position)) * x.abs().mean()
        tensors[leaf.position] = torch.complex(x, imaginary).requires_grad_()
    return arguments.replaced(tensors)


def lacks_conj(lab: Lab, tried: Arguments, name: str) -> bool:
    """Whether the gradient for a real grad_output is the conjugate of the true one."""
    run = forward(lab.precise[0], tried, seed=lab.settings.seed)
    oracle = own_forward(lab.precise[0], run, lab.settings.seed, lab.settings.reference)
    if oracle is None:
        return False
    position = next(leaf.position for leaf in tried.differentiable if leaf.name == name)
    ones = run.ones()
    claimed = run.gradients(ones)[position]
    parts = [oracle.gradients(o, v)[position] for o, v in ones.items()]
    return claimed is not None and lab.close(torch.stack(parts).sum(0), claimed.conj())


def meant(lab: Lab) -> bool:
    """Whether the source of the subject speaks of complex numbers."""
    return bool(_MENTIONED.search(text_of(lab.target.function or lab.target.original)))


def _unfit(lab: Lab) -> str:
    if lab.target.module is not None:
        return "the parameters of a module are real"
    if foreign(lab):
        return "foreign code reads the memory as real numbers"
    return "" if worth_exploring(lab) else "the gradient is right on a part of its domain only"

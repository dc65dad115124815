"""backward fails for a type of number that forward accepts.

What it finds
-------------
forward is run in float32 (at level deep also in bfloat16 and float16). Where it works and backward raises, a type is built
into backward. Operations that PyTorch itself lacks in this precision do not count.

The same is tried with complex numbers: for them PyTorch wants the conjugate of the derivative (`grad_output * x.conj()`
for x * y), and a backward that was written for real numbers lacks it. What came out stands in the compatibility matrix,
column complex. It is a warning where the source mentions complex numbers (`conj`, `fft`, `is_complex`), and at level
deep `info` elsewhere.

Why it matters
--------------
`torch.zeros(n)` without a dtype, or a constant of float64, mixes types as soon as somebody trains in another one. A complex
gradient without its conjugate has the right size and points elsewhere.

Known problems
--------------
Modules are not tried with complex numbers, nor is code that hands bare pointers to a library.

References
----------
https://github.com/pytorch/pytorch/issues/47906, https://github.com/shawntan/scattermoe/issues/17
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.lexicon import is_a

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS318"
SEVERITY = "warning"
LEVEL = "standard"
BAD = """
import torch


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1)

    @staticmethod
    def backward(ctx, grad_output):
        n = grad_output.shape[1]
        return grad_output @ torch.tril(torch.ones(n, n, dtype=torch.float64))


gradsmith_inputs = {"Project": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("torch.ones(n, n, dtype=torch.float64)", "grad_output.new_ones(n, n)")


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.conditions.complex_numbers import complex_numbers, meant
    from gradsmith.lab.explore.precision import precisions, worth_measuring

    outcome = complex_numbers(lab)
    if not worth_measuring(lab):
        return
    for found in precisions(lab):
        if found.state == "raises":
            name = str(found.dtype).removeprefix("torch.")
            yield lab.finding(
                f"{lab.target.name}.backward raises for {name} inputs, and forward does not: {found.detail}",
                severity="warning" if name == "float32" else "info",
                advice="Make tensors in the dtype of the gradient that arrives: replace what names a dtype, in this line or before "
                "it, by the dtype of grad_output.",
                raised=found.raised,
                at="backward",
                evidence={"dtype": name},
            )
            return
    spoken_of = meant(lab) and not _in_pairs(lab)
    if outcome.differs and (spoken_of or lab.level == "deep"):
        yield lab.finding(
            f"{lab.target.name} accepts complex inputs, and its gradient is wrong for them: {outcome.detail}.",
            severity="warning" if spoken_of else "info",
            advice="PyTorch's gradient is the conjugate of the derivative: multiply grad_output by the conj() of it, or "
            "reject complex inputs in forward.",
            evidence={"dtype": "complex128"},
        )


# Real and imaginary parts in a last dimension of 2: the complex numbers that are spoken of are real tensors.
_PAIRS = re.compile(
    r"shape\[-1\]\s*==\s*2|size\(-1\)\s*==\s*2|\.\.\., [01]\]|view_as_(?:complex|real)|unbind\((?:dim=)?-1\)"
)


def _in_pairs(lab: Lab) -> bool:
    from gradsmith.source.loaded import text_of

    if all(any(is_a(name, part) for name in lab.target.names) for part in ("real part", "imaginary part")):
        return True  # two inputs: the real parts and the imaginary ones
    return bool(_PAIRS.search(text_of(lab.target.function or lab.target.original)))

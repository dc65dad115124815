"""The gradient is right only to the digits of a narrower type.

Every element is nearly right, the errors look like rounding in float32, bfloat16 or float16, and a value of that type was
seen on the way: forward or backward computes, or casts, in a narrower type than its input. Where they leave torch (NumPy,
C), nothing is seen there, and no type is named.
"""

from __future__ import annotations

import torch

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.lab.explore.questions import types_of_numbers
from gradsmith.lab.subject.foreign import leaves_torch

RANK = 80
NAMES_A_MISTAKE = False
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.float() * 3 * x.float() ** 2).double()


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


_TYPES = ((torch.float32, 2e-9, 1e-5), (torch.bfloat16, 3e-4, 5e-2), (torch.float16, 3e-5, 5e-3))


def fits(case: Case) -> Fit | None:
    off = (case.claimed - case.truth)[case.known].abs()
    relative = float(off.max()) / max(case.scale, 1e-300)
    lost = off > 0  # exact zeros (a mask) have no digits to lose
    if not bool(lost.any()):
        return None
    typical = float((off / case.truth[case.known].abs().clamp(min=1e-6 * case.scale))[lost].median())
    # Rounding makes some too large and some too small; an epsilon in a denominator makes all of them too small.
    signs = ((case.claimed - case.truth) * case.truth.conj())[case.known].real.sign()
    mixed = bool((signs > 0).any()) and bool((signs < 0).any())
    advice = (
        f"Keep the precision of '{case.name}' in backward: no .float(), no .half(), no tensor created without dtype."
    )
    for dtype, low, high in _TYPES:
        if not (low / 30 <= typical and low <= relative <= high and (mixed or off.numel() < 4)):
            continue
        if dtype in types_of_numbers(case.lab.tape):
            name = str(dtype).removeprefix("torch.")
            return Fit(f"agrees to {relative:.1g} only, as if computed in {name}", advice)
        if leaves_torch(case.lab.target):
            return Fit(f"agrees to {relative:.1g} only, and part of it is computed outside torch", advice)
    return None

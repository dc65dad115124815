"""The gradient is a constant multiple of the true one.

Every element is off by the same factor: 2 for a square, n or 1/n for a mean, the batch size for a reduction, or one of
the numbers passed to forward.
"""

from __future__ import annotations

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.lab.run import normal_like

RANK = 30
BAD = """
import torch


class MeanSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().mean()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"MeanSquare": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def fits(case: Case) -> Fit | None:
    claimed, truth = case.claimed[case.known], case.truth[case.known]
    power = float((truth * truth).sum())
    if power == 0:
        return None
    factor = float((claimed * truth).sum()) / power
    if factor == 0 or abs(factor - 1) < 1e-6 or not case.matches(case.claimed, factor * case.truth):
        return None
    if claimed.numel() < 3 and not _constant(case, factor):
        return None
    name = _named(case, factor)
    what = f"{factor:.6g} times the true one" + (f" ({name})" if name else "")
    return Fit(f"is {what}", f"Multiply what backward returns for '{case.name}' by {_inverse(factor, name)}.")


def _constant(case: Case, factor: float) -> bool:
    """Of one number any other is a multiple: ask again with another grad_output."""
    v = normal_like(case.v, case.lab.generator(33))
    claimed, truth = case.claimed_for(v), case.truth_for(v)
    return claimed is not None and truth is not None and case.matches(claimed, factor * truth)


def _named(case: Case, factor: float) -> str:
    """What the factor probably is: a size, or a number that forward was given."""
    sizes: dict[str, float] = {"the number of elements": case.x.numel(), "the number of outputs": case.output.numel()}
    for name, tensor in case.inputs.items():
        sizes |= {f"{name}.shape[{i}]": float(n) for i, n in enumerate(tensor.shape)}
    names = case.lab.target.names
    for i, value in enumerate(case.lab.arguments.flat):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and i < len(names):
            sizes[names[i]] = float(value)
    for name, size in sizes.items():
        if size not in (0.0, 1.0) and abs(factor - size) < 1e-6 * abs(size):
            return name
        if size not in (0.0, 1.0) and abs(factor * size - 1) < 1e-6:
            return f"1 / {name}"
    return ""


def _inverse(factor: float, name: str) -> str:
    if name.startswith("1 / "):
        return name.removeprefix("1 / ")
    return f"1 / {name}" if name else f"{1 / factor:.6g}"

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
    factor = uniform(case)
    name = _named(case, factor) if factor is not None else ""
    if factor is None or not name:
        return None
    return Fit(
        f"is {factor:.6g} times the true one" + (f" ({name})" if name != f"{factor:.6g}" else ""),
        f"Multiply what backward returns for '{case.name}' by {_inverse(name)}.",
    )


def uniform(case: Case) -> float | None:
    """The number by which every element is off, for two grad_outputs and at another example; None where there is none."""
    factor = _ratio(case)
    if factor is None or (case.claimed[case.known].numel() < 3 and not _constant(case, factor)):
        return None
    return factor


def _ratio(case: Case) -> float | None:
    claimed, truth = case.claimed[case.known], case.truth[case.known]
    power = float((truth * truth).sum())
    factor = float((claimed * truth).sum()) / power if power else 0.0
    if factor == 0 or abs(factor - 1) < case.rtol or not case.matches(case.claimed, factor * case.truth):
        return None
    return factor


def _constant(case: Case, factor: float) -> bool:
    """Of one number any other is a multiple: ask again with another grad_output."""
    v = normal_like(case.v, case.lab.generator(33))
    claimed, truth = case.claimed_for(v), case.truth_for(v)
    return claimed is not None and truth is not None and case.matches(claimed, factor * truth)


def _named(case: Case, factor: float) -> str:
    """What the factor is: 2 or 1/2, a size or its root, or a number that forward was given. Empty for any other number."""
    for name, value in _numbers(case).items():
        if value > 0 and abs(value - 1) > 1e-6:
            for text, number in ((name, value), (f"1 / {name}", 1 / value)):
                if abs(factor - number) < 1e-6 * number:
                    return text
    return ""


def _numbers(case: Case) -> dict[str, float]:
    """Every number that may have got into a gradient by mistake, by its name."""
    names, options = case.lab.target.names, {}
    for i, value in enumerate(case.lab.arguments.flat):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and i < len(names):
            options[names[i]] = float(value)
    sizes = {f"{name}.shape[{i}]": float(n) for name, t in case.inputs.items() for i, n in enumerate(t.shape)}
    counts = {f"{case.name}.numel()": float(case.x.numel()), "the number of outputs": float(case.output.numel())}
    rows = {
        f"{case.name}.numel() / {case.name}.shape[{i}]": case.x.numel() / n for i, n in enumerate(case.x.shape) if n
    }
    plain = {"2": 2.0, **options, **counts, **sizes, **rows}
    return plain | {
        f"the square root of {name}": value**0.5 for name, value in plain.items() if value > 0 and name != "2"
    }


def _inverse(name: str) -> str:
    return name.removeprefix("1 / ") if name.startswith("1 / ") else f"1 / {name}"

"""`gs.gradcheck`: a drop-in for `torch.autograd.gradcheck` that says what is wrong, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from gradsmith.checking.run import check
from gradsmith.findings import GradsmithError

# torch's option -> what it means here. Options that only tune its numeric Jacobian have nothing to tune.
_UNDERSTOOD = {"atol", "rtol", "raise_exception"}
_UNNECESSARY = {
    "eps",
    "nondet_tol",
    "check_undefined_grad",
    "check_grad_dtypes",
    "check_batched_grad",
    "check_batched_forward_grad",
    "check_forward_ad",
    "check_backward_ad",
    "fast_mode",
    "masked",
    "check_sparse_nnz",
}


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, raise_exception: bool = True, **torch_options: Any
) -> bool:
    """True if the gradient is right; otherwise raises with the report, or returns False with `raise_exception=False`.

    Takes torch's arguments. `atol` and `rtol` loosen the comparison; the options that tune torch's numeric Jacobian
    (eps, fast_mode, nondet_tol, ...) are accepted and not needed. Contract and gradient are checked at level "quick".

    >>> import torch
    >>> gradcheck(torch.sin, torch.randn(3, dtype=torch.float64, requires_grad=True))
    True
    """
    unknown = set(torch_options) - _UNDERSTOOD - _UNNECESSARY
    if unknown:
        from gradsmith.nearest import nearest

        name = min(unknown)
        raise GradsmithError(f"gradcheck has no option {name!r}; {nearest(name, _UNDERSTOOD | _UNNECESSARY)}")
    values = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    report = check(func, *values, level="quick", atol=torch_options.get("atol"), rtol=torch_options.get("rtol"))
    if raise_exception:
        report.raise_if_failed()
    return report.ok

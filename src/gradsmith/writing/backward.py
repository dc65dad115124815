"""A derived backward as edits of the user's own class: what an editor writes at "derive backward"."""

from __future__ import annotations

from typing import Any

from gradsmith.checking.discoveries import weight_of
from gradsmith.diagnosis.mending.mend import rederived
from gradsmith.findings import Edit, GradsmithError
from gradsmith.inputs.supply import supply
from gradsmith.lab import Lab, Settings
from gradsmith.lab.subject.binding import bound
from gradsmith.lab.subject.target import resolve


def derived_backward(function: Any, *, seed: int = 0) -> tuple[Edit, ...]:
    """The edits that write a backward, derived from forward, into the class `function`: a new method, or another body.

    Nothing comes back that was not proved, at the inputs that are declared, recorded or guessed, and at others. What
    cannot be derived raises a GradsmithError that says why.
    """
    target = resolve(function)
    if target.function is None:
        raise GradsmithError(f"{target.name} is not a torch.autograd.Function")
    found = supply(target)
    if found.missing:
        raise GradsmithError(f"{target.name}: {found.missing}")
    args, kwargs = found.examples[0]
    own, arguments = bound(target, args, dict(kwargs))
    lab = Lab(own, arguments, Settings(seed=seed), isolated=True)
    with lab.guarded():
        lab.measure_noise()
        return rederived(lab, lambda discovery: weight_of(discovery) == "error").edits

"""Weigh a report on guessed inputs: an accusation is only as good as the inputs it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.nn import Module

from gradsmith.catalog import find
from gradsmith.checking import verdict
from gradsmith.checking.elsewhere.guards import where_nothing_is_clamped
from gradsmith.checking.elsewhere.labels import where_labels_are_binary
from gradsmith.checking.elsewhere.reads import where_every_element_is_read
from gradsmith.checking.elsewhere.solvers import (
    where_inputs_are_vectors,
    where_iterations_converged,
    where_no_norm_is_clamped,
    where_tolerances_are_small,
)
from gradsmith.checking.elsewhere.structure import (
    Elsewhere,
    number_made_up,
    where_a_number_is_in_range,
    where_definite,
    where_implied_inputs_fit,
    where_numbers_lie_on_an_axis,
    where_objects_fit,
    where_subclasses_fit,
    where_symmetric,
    with_other_functions,
)
from gradsmith.diagnosis import causes
from gradsmith.findings import Finding, Report
from gradsmith.inputs.examples import Supply
from gradsmith.inputs.guess.functions import Written
from gradsmith.inputs.lifting import assumed
from gradsmith.lab.explore.questions import looked_at
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.state import preserved
from gradsmith.lab.run import recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.binding import Example
from gradsmith.lab.subject.target import Target

Search = Callable[[Target, tuple[Any, ...], dict[str, Any], int], Elsewhere | None]
# Those that show a right gradient come first.
SEARCHES: tuple[Search, ...] = (
    where_symmetric,
    where_definite,
    where_numbers_lie_on_an_axis,
    where_a_number_is_in_range,
    where_nothing_is_clamped,
    where_no_norm_is_clamped,
    where_labels_are_binary,
    where_iterations_converged,
    where_tolerances_are_small,
    with_other_functions,
    where_implied_inputs_fit,
    where_subclasses_fit,
    where_objects_fit,
    where_every_element_is_read,
)
# Beyond a guard forward is flat, and between the steps of a search: both look like a surrogate.
_FLAT: tuple[Search, ...] = (where_nothing_is_clamped, where_no_norm_is_clamped, where_tolerances_are_small)


def weighed(report: Report, target: Target, supply: Supply, seed: int) -> Report:
    """The report with every accusation that the guess itself may be to blame for made a remark or a question."""
    (example,) = supply.examples
    report = replace(report, subjects=[replace(s, inputs_code=supply.code) for s in report.subjects])
    refuted = any(s.verdict == "refuted" for s in report.subjects)
    if refuted and "wrong" in verdict.outcomes(report):
        report = _asked_elsewhere(report, target, example, seed, _searches(report))
    elif any(find(f.rule).outcome == "surrogate" for f in report.findings):
        report = _asked_elsewhere(report, target, example, seed, _FLAT)
    report = verdict.doubted_on_guess(report, lambda finding: _explained(finding, target, example))
    report = _with_doubts_about_shapes(report, target, example, seed)
    known = dict(zip(target.names, (*example[0], *example[1].values())))

    def guessed_tensor(argument: str) -> bool:
        value = known.get(argument)
        return isinstance(value, Tensor) and not value.requires_grad

    findings = [verdict.perhaps_no_tensor(f, guessed_tensor) for f in report.findings]
    return replace(report, findings=findings, notes=[*report.notes, *_taken_out(target)])


def elsewhere(target: Target, example: Example, seed: int, searches: Sequence[Search] = SEARCHES) -> Elsewhere | None:
    """Inputs of a kind the author may have meant, on which the gradient is right; or what had to be guessed."""
    with preserved():
        for search in searches:
            found = search(target, *example, seed)
            if found is not None:
                return found
    assumption = assumed(target.function)
    if assumption is None or not assumption.guessed or searches is not SEARCHES:
        return None
    names = ", ".join(f"'{name}'" for name in assumption.guessed)
    return Elsewhere(example[0], f"{names} of {assumption.outer} had to be guessed", proven=False)


def _explained(finding: Finding, target: Target, example: Example) -> bool:
    """Whether a wrong gradient is a mistake on any inputs: a small change mends it, its kind says what was written, or it
    is right at other elements (so it is meant to be the derivative), and no number was made up for it.

    What is right without something that its author wrote, not linear in grad_output, or wrong only where forward is flat,
    may be meant.
    """
    repair = finding.evidence.get("repair")
    if find(finding.rule).outcome == "nonlinear" or finding.evidence.get("leaves out"):
        return False
    if finding.evidence.get("only where flat"):
        return False
    if finding.evidence.get("mended"):
        return True
    if repair is not None and not repair["derived"]:
        return not repair["leaves out"]
    cause = causes().get(finding.cause or "")
    if cause is None:
        return False
    partly_right = finding.evidence.get("partly right", False)
    return cause.names_a_mistake or (partly_right and not number_made_up(target, example[0]))


def _searches(report: Report) -> Sequence[Search]:
    """Where a wrong gradient came back in another shape, too, the shapes themselves may be what is wrong."""
    found = [g for f in report.findings for g in (f, *f.symptoms)]
    wrong = {f.argument for f in found if find(f.rule).outcome == "wrong"}
    unreduced = any(find(f.rule).outcome == "unreduced" and f.argument in wrong for f in found)
    return (*SEARCHES, where_inputs_are_vectors) if unreduced else SEARCHES


def _asked_elsewhere(report: Report, target: Target, example: Example, seed: int, searches: Sequence[Search]) -> Report:
    """A guess may break what the author takes for granted: then nothing is proven, and the reader is asked."""
    found = elsewhere(target, example, seed, searches)
    if found is None:
        return report
    return verdict.accused_on_guess(report, f"{found.words}; declare inputs to say what is meant", proven=found.proven)


def _unseen_by_forward(target: Target, example: Example, seed: int) -> bool:
    """Whether forward only keeps some input for backward, so that nothing says what kind of value it has to be."""
    with preserved():
        arguments = Arguments.of(*example, target.names)
        known = looked_at(recorded(target, arguments, seed))
    return any(leaf.position not in known for leaf in arguments.leaves)


def _with_doubts_about_shapes(report: Report, target: Target, example: Example, seed: int) -> Report:
    """A guessed function need not use the inputs that its author hands to it, and who writes `def build(scale=None)`
    may never build it without a scale: what backward raises then proves nothing."""
    assumption = assumed(target.function)
    unset = assumption is not None and None in assumption.values.values()
    several = sum(isinstance(a, Tensor) for a in example[0]) > 1
    function = any(isinstance(a, (Written, Module)) for a in example[0])
    unseen = _unseen_by_forward(target, example, seed) if "raises" in verdict.outcomes(report) else False

    def proves_nothing(finding: Finding) -> bool:
        # Shapes that do not fit each other: with several tensors, the guess may be what does not fit.
        # And whoever reads the entries of a sparse gradient has a layer behind it that returns one.
        unfit = (several and torch_says.sizes_differ(finding.message)) or torch_says.sparse_layout_wanted(
            finding.message
        )
        return function or unset or unseen or bool(unfit)

    return verdict.shapes_on_guess(report, several=several, raising_proves_nothing=proves_nothing)


def _taken_out(target: Target) -> list[str]:
    assumption = assumed(target.function)
    if assumption is None or not assumption.values:
        return []
    given = ", ".join(f"{k}={getattr(v, '__name__', repr(v))}" for k, v in assumption.values.items() if v != ())
    return [f"{target.name}: taken out of {assumption.outer}({given}), which was not called"]

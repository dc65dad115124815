"""What exploring found, as findings: the moves that are left, the cause there, and both numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradsmith.checking import verdict
from gradsmith.checking.accepting import comment, plain
from gradsmith.diagnosis import diagnose
from gradsmith.diagnosis.case import Case, Fit, case_of
from gradsmith.diagnosis.repair import any_repair
from gradsmith.findings import Finding
from gradsmith.lab.explore.budget import within
from gradsmith.lab.explore.explorer import Discovery, explored
from gradsmith.lab.explore.intent import tests_grad_output
from gradsmith.lab.explore.move import Kind, as_json, told
from gradsmith.lab.explore.moves.options import InventedOption
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.resemblance import weighs_grad_output
from gradsmith.lab.once import once
from gradsmith.lab.snippet import demonstration
from gradsmith.lab.subject.target import where_comments_go

_GUARD = (
    "Guard the division, root or logarithm in backward for these inputs: torch.where on what goes into it, as well as on "
    "what comes out."
)


def discovered(lab: Lab, kinds: Sequence[Kind], advice: str) -> Iterator[Finding]:
    """One finding for each input that is wrong after steps of these kinds; assumptions have a rule of their own."""
    seen: set[tuple[str | None, str]] = set()
    for discovery in explored(lab).of(*kinds):
        weight = weight_of(discovery)
        key = (_argument(discovery), discovery.trial.status)
        if _is_innocent(lab, discovery) or any(discovery is meant for meant in meant_elsewhere(lab)):
            continue
        if weight != "assumption" and key not in seen and not _overflows(discovery):
            seen.add(key)
            yield replace(_finding(lab, discovery, advice), severity=weight)


@once
def meant_elsewhere(lab: Lab) -> list[Discovery]:
    """Wrong numbers a step away, where backward looks at the value of grad_output: as at the example, that may be meant."""
    if not tests_grad_output(lab.target):
        return []
    wrong = [d for d in explored(lab).found if d.trial.status == "wrong" and d.trial.arguments is not None]
    return [d for d in wrong if _weighs_grad_output(lab, d)]


def _weighs_grad_output(lab: Lab, discovery: Discovery) -> bool:
    assert discovery.trial.arguments is not None
    there = Lab(lab.precise[0], discovery.trial.arguments, lab.settings, lab.level, isolated=lab.isolated)
    try:
        return bool(there.gradient.wrong) and weighs_grad_output(there.gradient, there.settings)
    except Exception:  # the user's code, on inputs of ours
        return False


def _is_innocent(lab: Lab, discovery: Discovery) -> bool:
    """Another size is other values, too: where other values of the same input do it at its own size, the size is innocent."""
    if discovery.kind != "size":
        return False
    moved = {move.argument for move in discovery.trial.moves}
    for other in explored(lab).of("values", "branch", "ids"):
        same = _argument(other) == _argument(discovery) and weight_of(other) == "error"
        if same and moved & {move.argument for move in other.trial.moves}:
            return True
    return False


def _overflows(discovery: Discovery) -> bool:
    """A gradient that is not finite because its inputs are large: that has a rule of its own."""
    return discovery.trial.status == "non-finite" and all(move.magnitude for move in discovery.trial.moves)


def assumed(lab: Lab) -> list[Discovery]:
    """The discoveries that are assumptions: one for each sentence, and none that an error says already."""
    meant = {id(d) for d in meant_elsewhere(lab)}
    everything = [d for d in explored(lab).found if id(d) not in meant]
    accused = {key for d in everything if weight_of(d) == "error" for key in _about(d)}
    stated = [d for d in everything if weight_of(d) == "assumption" and not _overflows(d)]
    stated = _options_together([d for d in stated if not accused.intersection(_about(d))])
    return list({sentence_of(d): d for d in stated}.values())


def _options_together(stated: Sequence[Discovery]) -> list[Discovery]:
    """Several values of one option that spoil the same gradient are one assumption: "`shift` is not -1, 1 or 3"."""
    by_option: dict[tuple[str, str | None], list[Discovery]] = {}
    others: list[Discovery] = []
    for discovery in stated:
        (move, *more) = discovery.trial.moves
        if isinstance(move, InventedOption) and not more:
            by_option.setdefault((move.argument, _argument(discovery)), []).append(discovery)
        else:
            others.append(discovery)
    together = []
    for (option, _), several in by_option.items():
        values = sorted(
            {repr(move.value) for d in several for move in d.trial.moves if isinstance(move, InventedOption)}
        )
        told_values = " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
        together.append(replace(several[0], assumption=f"`{option}` is not {told_values}"))
    return [*others, *together]


def _about(discovery: Discovery) -> set[tuple[str, str | None]]:
    """Which input was changed, and whose gradient is wrong then."""
    return {(move.argument, _argument(discovery)) for move in discovery.trial.moves}


def assumption_finding(lab: Lab, discovery: Discovery) -> Finding:
    """The assumption in one sentence, and the step that shows what happens without it."""
    m, moves = discovery.trial.mismatch, discovery.trial.moves
    sentence = sentence_of(discovery)
    harm = f"the gradient is wrong. {_numbers(discovery)}" if m is not None else f"{discovery.trial.detail}."
    # A broken structure is the sentence itself, turned round: to say it twice helps nobody.
    where = "without that" if all(move.assumes for move in moves) else told(moves)
    message = f"{lab.target.name}.backward assumes that {sentence}. gradsmith tried other inputs: {where}, {harm}"
    finding = lab.finding(
        message,
        argument=_argument(discovery),
        advice=f"{_accepting(lab, sentence)} If not, {_otherwise(discovery)}",
        evidence={"assumption": sentence, "accept": comment(sentence), "moves": [as_json(move) for move in moves]},
    )
    return _reproducible(lab, discovery, finding)


def confined(lab: Lab) -> list[tuple[str, str]]:
    """Inputs whose gradient is right along the domain of the example only, each with the sentence that must hold."""
    if lab.surrogate or lab.approximate:
        return []
    pairs = [pair for pair in lab.gradient.pairs if pair.explained]
    return list(dict.fromkeys((pair.leaf.name, f"'{pair.leaf.name}' {pair.explained}") for pair in pairs))


def confined_finding(lab: Lab, name: str, sentence: str) -> Finding:
    """The same for a gradient that is right as long as the input stays on the domain, and wrong in directions that leave it."""
    return lab.finding(
        f"{lab.target.name}.backward assumes that {sentence}: in directions that keep this the gradient is right, in others "
        "it is not the derivative of forward.",
        argument=name,
        advice=f"{_accepting(lab, sentence)} If not, derive the gradient for other inputs, too.",
        evidence={"assumption": sentence, "accept": comment(sentence)},
    )


def _accepting(lab: Lab, sentence: str) -> str:
    return (
        f"If that always holds, accept it with `{comment(sentence)}` {where_comments_go(lab.target)}, or with "
        f'`assumes="{plain(sentence)}"` in @gs.example_inputs.'
    )


def _otherwise(discovery: Discovery) -> str:
    if discovery.trial.status == "non-finite":
        return f"{_GUARD[0].lower()}{_GUARD[1:]}"
    return "derive the gradient for other inputs, too."


def sentence_of(discovery: Discovery) -> str:
    """What has to hold: "'matrix' is symmetric"."""
    if discovery.assumption:
        return discovery.assumption
    steps = [step.removeprefix("with ") for step in told(discovery.trial.moves).split(" and with ")]
    return f"not {steps[0]}" if len(steps) == 1 else f"{' and '.join(steps)} never come together"


def weight_of(discovery: Discovery) -> verdict.Weight:
    return verdict.of_explored(discovery.kind, discovery.trial.status, own=discovery.trial.own)


def _argument(discovery: Discovery) -> str | None:
    m = discovery.trial.mismatch
    return m.argument if m is not None else discovery.trial.moves[0].argument


def _finding(lab: Lab, discovery: Discovery, advice: str) -> Finding:
    trial, name = discovery.trial, lab.target.name
    words = told(trial.moves)
    fit: Fit | None = None
    drawn: dict[str, Any] = {}
    if trial.status == "raises":
        message = f"{name}.backward raises {words}, and forward does not: {trial.detail}"
    elif trial.mismatch is None:
        message = f"{name}.backward: {words}, {trial.detail}."
    else:
        fit, drawn = within(lab.budget.for_diagnosis(), lambda: _diagnosed(lab, discovery)) or (None, {})
        kind = fit.words if fit is not None else "is wrong"
        message = f"{name}.backward: {words}, the gradient of '{trial.mismatch.argument}' {kind}. {_numbers(discovery)}"
    if trial.status == "non-finite":
        advice = _GUARD
    if fit is not None and fit.advice:  # a line to write needs no general words
        more = fit.advice if fit.line is not None else f"{fit.advice} {advice}"
    else:
        more = advice
    explored_by = explored(lab)
    finding = lab.finding(
        message,
        argument=_argument(discovery),
        advice=more,
        cause=fit.cause if fit is not None else None,
        line=(fit.line if fit is not None else None) or lab.line_of_gradient(_argument(discovery)),
        evidence={
            "variation": words,
            "status": trial.status,
            "kind": discovery.kind,
            "moves": [as_json(move) for move in trial.moves],
            "tried": explored_by.judged,
            **({"mended": True} if fit is not None and fit.line is not None else {}),
            **drawn,
        },
    )
    return _reproducible(lab, discovery, finding)


def _numbers(discovery: Discovery) -> str:
    m = discovery.trial.mismatch
    if m is None:
        return ""
    at = f"[{', '.join(map(str, m.element))}]" if m.element else ""
    said = "None" if m.missing else f"{m.claimed:.6g}"
    return (
        f"At {m.argument}{at}, for a random grad_output: backward returned {said}, the true gradient is {m.true:.6g}."
    )


def _diagnosed(lab: Lab, discovery: Discovery) -> tuple[Fit | None, dict[str, Any]]:
    """The cause, looked for where the gradient is wrong, and both gradients there, to be drawn."""
    trial = discovery.trial
    if trial.arguments is None or trial.mismatch is None or lab.surrogate:
        return None, {}
    there = Lab(lab.precise[0], trial.arguments, lab.settings, lab.level, isolated=lab.isolated)
    drawn: dict[str, Any] = {}
    try:
        for pair in there.gradient.wrong:
            if pair.leaf.name == trial.mismatch.argument and pair.mismatch is not None:
                case = case_of(there, pair, own=lab)
                if case is None:
                    return None, drawn
                drawn = case.side_by_side(trial.mismatch.element)
                return _advised(case, told(trial.moves)), drawn
    except Exception:  # the cause is a help; without one the numbers stand
        return None, drawn
    return None, drawn


def _advised(case: Case, words: str) -> Fit | None:
    """The cause, with a change to the source that mends this example and keeps the user's own; else what holds here only."""
    fit = diagnose(case)
    if fit is None or fit.line is not None:
        return fit
    change = any_repair(case)
    if change is not None:
        return replace(fit, advice=change.advice, line=change.line)
    return replace(
        fit, advice=f"{words[0].upper()}{words[1:]}: {fit.advice[0].lower()}{fit.advice[1:]}" if fit.advice else ""
    )


def _reproducible(lab: Lab, discovery: Discovery, finding: Finding) -> Finding:
    m, arguments = discovery.trial.mismatch, discovery.trial.arguments
    if arguments is None:
        return finding
    where = (m.argument, m.element) if m is not None else (None, None)
    return replace(finding, reproduce=demonstration(lab, arguments, "gradient", *where))

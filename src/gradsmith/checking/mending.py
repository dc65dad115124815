"""A proved change of the user's source, put on the findings that it settles: `check --fix` applies it, reports show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradsmith.catalog import find
from gradsmith.checking.discoveries import weight_of
from gradsmith.diagnosis.repair import leaves_out
from gradsmith.findings import Applicability, Edit, Finding, InputsFrom, plural
from gradsmith.lab.explore.budget import within
from gradsmith.lab.explore.explorer import Discovery, explored
from gradsmith.lab.explore.intent import how_to_declare, said
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.binding import bound

if TYPE_CHECKING:
    from gradsmith.diagnosis.mending.mend import Mend

# What a rule may say came out, where another backward could make it right.
_MENDABLE = ("wrong", "none", "raises", "count", "shape", "unreduced")


Example = tuple[tuple[Any, ...], dict[str, Any]]


def offered(lab: Lab, findings: Sequence[Finding], source: InputsFrom, others: Sequence[Example]) -> list[Finding]:
    """The findings, with the change that settles them where one was proved. A surrogate is never mended.

    `others` are the further examples that were declared: what is offered is right there, too. At level quick nothing is
    explored, so nothing would be proved: there no change is searched for.
    """
    if lab.level == "quick":
        return list(findings)
    settled = [f for f in findings if _is_mendable(f)] or [f for f in findings if "assumption" in f.evidence]
    surrogate = lab.surrogate or lab.approximate or any(find(f.rule).outcome == "surrogate" for f in findings)
    if not settled or surrogate or lab.target.function is None:
        return list(findings)
    mend = within(lab.budget.whole(), lambda: _mend(lab, others))
    if mend is None:
        return list(findings)
    unsafe = _unsafe(lab, settled, source)
    return [_with(f, mend, unsafe, how_to_declare(lab.target)) if f in settled else f for f in findings]


def _is_mendable(finding: Finding) -> bool:
    """Whatever is an error, or says that backward is not there: a change that makes every gradient right settles it."""
    return finding.severity == "error" or find(finding.rule).outcome in _MENDABLE


def _unsafe(lab: Lab, findings: Sequence[Finding], source: InputsFrom) -> str:
    """Why the change is to be read first; empty on inputs that somebody gave, of code that means the derivative, for an error."""
    if source == "guessed":
        return "gradsmith guessed the inputs"
    if said(lab.target):
        return "the source says that the gradient differs from the derivative on purpose"
    return "" if all(f.severity == "error" for f in findings) else "backward may be meant as it is"


def _mend(lab: Lab, others: Sequence[Example]) -> Mend | None:
    from gradsmith.diagnosis.mending.mend import mended  # loads all of deriving, which a right gradient does not need

    failing, wrong = _failing(lab)
    beside = [_beside(lab, example) for example in others]
    return mended(lab, failing, wrong, _is_serious, beside) if failing else None


def _beside(lab: Lab, example: Example) -> Lab:
    """Another example of the same subject."""
    target, arguments = bound(lab.target, *example)
    return Lab(target, arguments, lab.settings, lab.level, isolated=lab.isolated)


def _is_serious(discovery: Discovery) -> bool:
    return weight_of(discovery) == "error"


def _failing(lab: Lab) -> tuple[list[Lab], list[str]]:
    """The examples that refute it, and the inputs whose gradient is wrong at one of them."""
    try:
        pairs = lab.gradient.wrong
    except Exception:  # backward raises on the example itself
        return [lab], _suspects(lab)
    if pairs:
        return [lab], list(dict.fromkeys(pair.leaf.name for pair in pairs))
    failing, wrong = [], []
    found = explored(lab).found
    # What a repair does away with: errors, or, where there are none, what backward assumes.
    bad = [d for d in found if _is_serious(d)] or [d for d in found if weight_of(d) == "assumption"]
    for discovery in bad:
        trial = discovery.trial
        if trial.arguments is not None:
            failing.append(Lab(lab.precise[0], trial.arguments, lab.settings, lab.level, isolated=lab.isolated))
            wrong += [trial.mismatch.argument] if trial.mismatch is not None else []
    return failing, list(dict.fromkeys(wrong))


def _suspects(lab: Lab) -> list[str]:
    """Where backward raises, or torch refuses a shape: the inputs whose gradient is not right where only they require grad."""
    arguments = lab.arguments
    suspects = []
    for leaf in arguments.differentiable:
        alone = Lab(lab.target, arguments.only({leaf.position}), lab.settings, lab.level, isolated=lab.isolated)
        try:
            right = not alone.gradient.wrong
        except Exception:  # the user's backward, or what torch says of its result
            right = False
        suspects += [] if right else [leaf.name]
    return suspects or [leaf.name for leaf in arguments.differentiable]


def _with(finding: Finding, mend: Mend, unsafe: str, meant: str) -> Finding:
    """The finding with the edits; the advice says what they do, unless it says so already."""
    advice = finding.advice or ""
    how: Applicability = "unsafe" if unsafe else "safe"
    told = _words(mend, how)
    if mend.derived or not advice.startswith("Write `"):
        advice = told
    if "assumption" in finding.evidence:  # how to accept it stays, and the repair is the other way out
        kept, _, _ = (finding.advice or "").partition(" If not, ")
        advice = f"{kept} If not, {told[0].lower()}{told[1:]}"
    advice += f" The change is unsafe: {unsafe}." if unsafe else ""
    advice += meant if meant not in advice else ""
    repair = {"derived": mend.derived, "gradients": list(mend.gradients), "leaves out": _leaves_out(mend)}
    evidence = {**finding.evidence, "repair": repair}
    return replace(finding, edits=mend.edits, applicability=how, advice=advice, evidence=evidence)


def _words(mend: Mend, how: Applicability) -> str:
    if not mend.derived:
        return f"Write {_change(mend)}: with it every gradient is right, at these inputs and at others."
    names = " and ".join(f"'{name}'" for name in mend.gradients)
    option = "--fix" if how == "safe" else "--fix --unsafe-fixes"
    lines = sum(_length(edit) for edit in mend.edits)
    return (
        f"Replace the gradient{f' of {names}' if names else ''} by the one that gradsmith derived from forward "
        f"({plural(lines, 'line')}). It is right at these inputs and at others. `gradsmith check {option}` writes it."
    )


def _leaves_out(mend: Mend) -> bool:
    edit, line = mend.edits[0], mend.changed
    return not mend.derived and leaves_out(line[edit.column : edit.end_column], edit.replacement)


def _change(mend: Mend) -> str:
    """`2 * x` instead of `3 * x` in line 7; the whole line where a mere number or name is changed."""
    edit, line = mend.edits[0], mend.changed
    old = line[edit.column : edit.end_column]
    if len(mend.edits) > 1 or edit.end_line != edit.line:
        return f"`{edit.replacement}` in line {edit.line}"
    if old.isalnum():
        new = line[: edit.column] + edit.replacement + line[edit.end_column :]
        return f"`{new.strip()}` in line {edit.line}"
    return f"`{edit.replacement}` instead of `{old}` in line {edit.line}"


def _length(edit: Edit) -> int:
    return len(edit.replacement.splitlines())

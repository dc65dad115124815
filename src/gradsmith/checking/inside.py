"""A subject together with the custom Functions and operators that run in it, each of them a subject of its own.

A lambda, a helper, a layer or a model is judged as a whole, but what can be wrong in it has lines of its own: every Function is
checked on the inputs that it really gets, by both lenses. The whole waits for one that is wrong: it cannot be right before.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from gradsmith import catalog
from gradsmith.checking import verdict
from gradsmith.checking.accepting import accepted_for
from gradsmith.checking.options import Options
from gradsmith.checking.run import examine
from gradsmith.findings import RANK, Finding, Report, Subject
from gradsmith.folding import together
from gradsmith.inputs.examples import Supply
from gradsmith.inputs.recorded import of_inside
from gradsmith.inputs.supply import on_instance
from gradsmith.lab.inside import Inside, has_inside, identity, is_users, ran_inside
from gradsmith.lab.subject.declarations import Declaration, declaration_of
from gradsmith.lab.subject.target import Target, resolve
from gradsmith.surrogate_kinds import SURROGATE, frees

_THOROUGH = 3  # signatures of one Function that are checked at the level asked for; of further ones only the gradient


@dataclass(frozen=True)
class _Judged:
    """One of the Functions inside, what it is meant to be, and the report on it; no subjects where nothing could be run."""

    meant: Declaration
    report: Report


def examine_whole(target: Target, given: Supply, options: Options) -> Report:
    """The report on a subject and on what runs in it. The subject itself comes first."""
    inside = _inside(target, given, options)
    if not inside:
        return examine(target, given, options)
    judged = [_judged(one, target, given, options) for one in inside]
    inside.clear()  # it holds what they were given, which may be large
    broken = [s.name for one in judged for s in one.report.subjects if s.verdict == "refuted"]
    if broken:
        whole = Report(subjects=[_waiting(target, given, broken)])
    else:
        known = [f for one in judged for f in one.report.findings]
        whole = _unexplained(examine(target, given, _as_meant(target, options, judged)), known)
    report = together(whole, *(one.report for one in judged))
    return replace(report, functions=len(report.subjects), files=len({s.path for s in report.subjects}))


def _inside(target: Target, given: Supply, options: Options) -> list[Inside]:
    if given.missing or not has_inside(target):
        return []
    met: dict[Hashable, Inside] = {}
    for example in given.examples:
        one, (args, kwargs) = on_instance(target, example)
        for found in ran_inside(one, args, kwargs, options.seed):
            known = met.setdefault(identity(found.subject), replace(found, examples={}, calls=0, unkept=0))
            known.examples = {**found.examples, **known.examples}
            known.calls += found.calls
            known.unkept += found.unkept
    return list(met.values())


def _judged(inside: Inside, whole: Target, given: Supply, options: Options) -> _Judged:
    target = resolve(inside.subject)
    if isinstance(inside.subject, type) and not is_users(inside.subject):
        return _Judged(declaration_of(target), Report())
    supply = of_inside(inside, target, whole.name, given.source, options.seed)
    meant = declaration_of(target)
    if supply.missing:
        return _Judged(
            meant, Report(notes=[f"{target.name}, which {whole.name} runs, was not checked: {supply.missing}"])
        )
    # What the caller says of the whole (a reference, a slope, a projection) is not said of its parts.
    own = replace(options, gradient=None, kind=None, like=None, reference=None, project=None)
    # But what the whole accepts as always holding, holds for what runs in it.
    said_of = (*options.assumes.get(target.name, ()), *accepted_for(whole, options))
    own = replace(own, assumes={**own.assumes, target.name: said_of})
    report = _examined(target, supply, own)
    if options.gradient in ("surrogate", "approximate") and report.subjects[0].verdict != "verified":
        said = replace(own, gradient=options.gradient)
        report = _examined(target, supply, said)
        meant = Declaration(SURROGATE, False) if options.gradient == "surrogate" else Declaration(None, True)
    return _Judged(meant, report)


def _examined(target: Target, supply: Supply, options: Options) -> Report:
    first, others = supply.examples[:_THOROUGH], supply.examples[_THOROUGH:]
    report = examine(target, replace(supply, examples=first), options)
    if not others:
        return report
    quick = examine(target, replace(supply, examples=others, notes=()), replace(options, level="quick"))
    worst = verdict.worst([*report.subjects, *quick.subjects])
    both = together(report, quick)
    kept = replace(report.subjects[0], verdict=worst.verdict, reason=worst.reason, known=worst.known)
    return replace(both, subjects=[kept])


def _waiting(target: Target, given: Supply, broken: Sequence[str]) -> Subject:
    subject = verdict.unverified(target.name, "", target.path, target.line, inputs_from=given.source)
    return verdict.waiting_for(subject, broken)


def _as_meant(target: Target, options: Options, judged: Sequence[_Judged]) -> Options:
    """The whole of a surrogate is one, too: its gradient is not the derivative of its forward, and is not meant to be."""
    if options.gradient is not None or declaration_of(target) != Declaration():
        return options
    kinds = [one.meant.surrogate for one in judged if one.meant.surrogate is not None]
    if kinds:
        freest = max(kinds, key=lambda kind: sum(frees(kind, rule.waived_by) for rule in catalog.rules().values()))
        return replace(options, gradient="surrogate", kind=freest)
    return replace(options, gradient="approximate") if any(one.meant.approximate for one in judged) else options


def _unexplained(report: Report, known: Sequence[Finding]) -> Report:
    """Without what is the same defect, seen from outside: it is told where it stands, at the Function inside."""

    def told(finding: Finding) -> bool:
        rules = {finding.rule, *catalog.explained_by(finding.rule)}
        return any(f.rule in rules and RANK[f.severity or "info"] <= RANK[finding.severity or "info"] for f in known)

    return replace(report, findings=[f for f in report.findings if not told(f)])

"""`gs.check`: put a subject on the bench, run every probe of the catalogue, and give a verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from gradsmith import catalog
from gradsmith.cells import cell_number
from gradsmith.checking import ignoring, surroundings, verdict
from gradsmith.checking.accepting import accepted_for, unmatched
from gradsmith.checking.elsewhere.kernels import other_shapes
from gradsmith.checking.elsewhere.solvers import with_more_iterations
from gradsmith.checking.guessed import weighed
from gradsmith.checking.in_parts import is_wrong, of_both, of_part_alone, part_of
from gradsmith.checking.meant import declared, meant
from gradsmith.checking.memory_needed import beyond_memory
from gradsmith.checking.mending import offered
from gradsmith.checking.notes import inconclusive, notes, why_left_out
from gradsmith.checking.options import Options
from gradsmith.checking.steps import walk
from gradsmith.findings import Finding, GradsmithError, InputsFrom, Report, Subject, one_line
from gradsmith.folding import fold, merge
from gradsmith.inputs.examples import Supply, Wish
from gradsmith.inputs.supply import on_instance, supply
from gradsmith.lab import Arguments, Lab, Settings, Target, resolve
from gradsmith.lab.explore.moves.option_values import source_of
from gradsmith.lab.measure.gradient import NotNearby
from gradsmith.lab.process import stages
from gradsmith.lab.process.eager import uncompiled
from gradsmith.lab.process.state import preserved
from gradsmith.lab.run import Spent, at_first_look, out_of_time
from gradsmith.lab.subject.binding import Example, bound, unusable
from gradsmith.lab.subject.code import as_code
from gradsmith.lab.subject.foreign import interpreter_cell, needs_interpreter
from gradsmith.lab.subject.holders import modules_held
from gradsmith.rule_shape import LEVELS
from gradsmith.source.loaded import class_definition_of
from gradsmith.surrogate_kinds import frees, known


def check(
    fn: Any,
    *inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    gradient: str | None = None,
    like: Callable[..., Any] | None = None,
    level: str = "standard",
    isolate: bool = False,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    reference: Callable[..., Any] | None = None,
    project: Callable[..., Any] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    second_order: bool = False,
    steps: bool = False,
    coverage: bool = False,
    preview: bool = False,
) -> Report:
    """Is the gradient of `fn` right? Runs it, provokes it, and names what is wrong and where.

    `fn` is a Function class, its `.apply`, a custom op, an nn.Module or any callable. Without inputs, the declared
    ones are used. `gradient` says what the gradient is meant to be: "exact" (the default), "surrogate" or
    "approximate". `isolate=True` runs the check in a process of its own, which survives crashes and hangs.
    `second_order=True` demands that the second derivative is right, too. `steps=True` walks through it; `coverage=True`
    lists every line and side that was not reached. `preview=True` runs rules in preview as well.

    >>> import torch
    >>> report = check(torch.tanh, torch.randn(3, dtype=torch.float64, requires_grad=True))
    >>> report.ok
    True
    """
    options = Options(
        gradient=gradient,
        like=like,
        level=level,
        seed=seed,
        rtol=rtol,
        atol=atol,
        reference=reference,
        project=project,
        select=tuple(select),
        ignore=tuple(ignore),
        second_order=second_order,
        steps=steps,
        coverage=coverage,
        preview=preview,
    )
    if isolate:
        from gradsmith.checking.isolated import check_isolated

        return check_isolated(fn, inputs, dict(kwargs or {}), options)
    from gradsmith.checking.inside import examine_whole

    target = resolve(fn)
    if needs_interpreter(target):
        from gradsmith.checking.isolated import check_isolated

        return check_isolated(fn, inputs, dict(kwargs or {}), options)
    if inputs or kwargs:
        return examine_whole(target, Supply(((tuple(inputs), dict(kwargs or {})),), "given"), options)
    return examine_supplied(target, options)


OUT_OF_TIME = "not tried: the time for it was spent before its gradient was judged (--budget gives more)"


def examine_supplied(
    target: Target,
    options: Options,
    module: Any = None,
    device: Any = None,
    guessing: Callable[[], None] | None = None,
    own_process: bool = False,
) -> Report:
    """The report on a subject for which no inputs were given: declared, recorded or guessed ones are found for it."""
    from gradsmith.checking.inside import examine_whole

    wish = Wish(options.seed, module, options.recorded, device, guessing=guessing, own_process=own_process)
    return examine_whole(target, supply(target, wish), options)


def examine(target: Target, given: Supply, options: Options) -> Report:
    """The report on a subject, on the inputs that were supplied; the verdict is the worst of its examples."""
    if given.missing:
        return _told(unverified(target, given.missing), given)
    with uncompiled() if given.source in ("recorded", "guessed") else contextlib.nullcontext():
        report = _on_examples(target, given, options)
    if given.source == "guessed":
        inside, example = on_instance(target, given.examples[0])
        report = weighed(report, inside, replace(given, examples=(example,)), options.seed)
        if any(f.severity == "error" and "check" in f.lenses for f in report.findings):
            report = _converged(report, inside, example, options)
            for args, words in other_shapes(inside, example[0]):
                report = _guessed_again(report, inside, (args, example[1]), options, f"{words} it is right")
    return _told(report, given)


def _converged(report: Report, target: Target, example: Example, options: Options) -> Report:
    """Without the errors that are gone where an iteration, whose length had to be guessed, has come to its end."""
    more = with_more_iterations(target, example[0])
    if more is None:
        return report
    longer, names = more
    return _guessed_again(report, target, (longer, example[1]), options, f"with more iterations ({names}) it is right")


def _guessed_again(
    report: Report, target: Target, example: Example, options: Options, words: str, *, judged: bool = True
) -> Report:
    """Without the errors that are gone on another guess; if it must be `judged`, only where that ends in a verdict."""
    if not any(f.severity == "error" and "lint" not in f.lenses for f in report.findings):
        return report
    again = _on_examples(target, Supply((example,), "guessed"), replace(options, lint=False))
    seen = {f.rule for f in again.findings if f.severity == "error"}
    gone = {f.rule for f in report.findings if f.severity == "error" and "lint" not in f.lenses} - seen
    settled = all(s.verdict in ("verified", "refuted") for s in again.subjects)
    return verdict.gone_on_another_guess(report, gone, words) if gone and (settled or not judged) else report


def _told(report: Report, given: Supply) -> Report:
    """With what the supply has to say about the inputs."""
    subjects = [
        replace(s, measured={**s.measured, **given.ran}, assumptions=(*s.assumptions, *given.assumes))
        for s in report.subjects
    ]
    return replace(report, subjects=subjects, notes=[*report.notes, *given.notes])


def _on_examples(target: Target, given: Supply, options: Options) -> Report:
    reports: list[Report] = []
    tried = 0
    for number, example in enumerate(given.examples):
        one, (args, kwargs) = on_instance(target, example)
        others = [other for i, other in enumerate(given.examples) if i != number]
        try:
            reports += _examine_one(one, args, kwargs, given.source, options, number, others)
        except Spent:  # no time is left, not even for the first look at it
            break
        tried += 1
    if not reports:
        return unverified(target, OUT_OF_TIME)
    if tried < len(given.examples):
        reports[0].notes.append(
            f"{target.name}: {len(given.examples) - tried} of {len(given.examples)} examples not tried: the time for it was spent"
        )
    found = [f for report in reports for f in report.findings]
    findings = merge(sorted(found, key=lambda f: f.severity != "error"))  # of twins, the first gives the message
    findings = merge([*findings, *_source_findings(target, options)]) if options.lint else findings
    if target.path is not None and (cell := cell_number(target.path)) is not None:
        findings = [replace(f, cell=f.cell or cell) if f.path == target.path else f for f in findings]
    parted = ignoring.seen(findings, target.path, _definition(target))
    everything, findings = fold(findings), fold(parted.shown)
    seen = [report.subjects[0] for report in reports]
    settled = verdict.settled(verdict.worst(seen), findings)
    if parted.hidden:
        settled = verdict.ignored(settled, verdict.settled(verdict.worst(seen), everything))
        settled = replace(settled, measured={**settled.measured, ignoring.IGNORED: parted.comments})
    subject = replace(
        settled,
        measured={**settled.measured, "level": options.level},
        conditions=worst_of_each([s.conditions for s in seen]),
        assumptions=tuple(dict.fromkeys(sentence for s in seen for sentence in s.assumptions)),
        explored=surroundings.merged([s.explored for s in seen]),
        coverage=surroundings.covered_together([s.coverage for s in seen]),
    )
    notes = list(
        dict.fromkeys(
            [
                *(note for r in reports for note in r.notes),
                *unmatched(subject, target, options),
                *catalog.notes(_rules(options)),
            ]
        )
    )
    return ignoring.without_used(Report(findings, [subject], functions=1, files=1, notes=notes))


def _definition(target: Target) -> Any:
    """The class or function as it is written."""
    return class_definition_of(type(target.module)) if target.module else getattr(source_of(target), "node", None)


def unverified(target: Target, reason: str) -> Report:
    """The report on a subject that could not be run at all."""
    conditions = interpreter_cell(target, reason)
    subject = verdict.unverified(target.name, reason, target.path, target.line, conditions=conditions)
    return Report(subjects=[subject], functions=1, files=1)


def _examine_one(
    target: Target,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    source: InputsFrom,
    options: Options,
    number: int,
    others: Sequence[tuple[tuple[Any, ...], dict[str, Any]]] = (),
) -> list[Report]:
    with preserved(*args, *kwargs.values(), target.module, *modules_held(target.original)):
        given = target
        target, arguments = bound(target, args, kwargs)
        subject = verdict.unverified(
            target.name,
            unusable(arguments),
            target.path,
            target.line,
            inputs_from=source,
            inputs_code=as_code(arguments),
            gradient=options.gradient or "exact",
        )
        if not subject.reason:
            subject = replace(subject, reason=beyond_memory(arguments))
        if subject.reason:
            return [Report(subjects=[subject])]
        lab = _lab(target, arguments, options)
        lab.inputs_from = source
        lab.declared_at = (target.name, number) if source == "declared" else None
        lab.first, lab.number = number == 0, number
        lab.accepted = accepted_for(target, options)
        if (cut := part_of(lab, given, (args, kwargs))) is None:
            with lab.guarded():
                if trouble := beyond_memory(arguments, lab.watched.outputs):
                    return [Report(subjects=[replace(subject, reason=trouble)])]
                lab.measure_noise()
                return [_examined(lab, subject, options, others)]
        (part,) = _examine_one(given, *cut.example, source, options, number, others)
        lab.gradient_alone, lab.level = True, "quick"
        with lab.guarded():
            lab.measure_noise()
            if is_wrong(part) and lab.plainly_right is None:
                return [of_part_alone(part, cut)]
            whole = _examined(lab, subject, replace(options, level="quick", steps=False, coverage=False), ())
        return of_both(whole, part, cut)


def _examined(
    lab: Lab, subject: Subject, options: Options, others: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]
) -> Report:
    findings, trouble = _probe(lab, options)
    findings = offered(lab, findings, subject.inputs_from, others)
    measured: dict[str, Any] = {"steps": [asdict(step) for step in walk(lab)]} if options.steps else {}
    explored = surroundings.explored(lab)
    if explored.get("rejected"):
        measured["rejected variations"] = explored["rejected"]
    if lab.left_out:
        measured["left out"] = {"what": lab.left_out, "because": why_left_out(lab)}
    raises = verdict.stopped(findings, "measuring")
    if not trouble and not raises and not any(f.severity == "error" for f in findings):
        trouble = inconclusive(lab)
    if options.coverage:
        measured["coverage asked"] = True
    subject = replace(
        verdict.on_one_example(subject, trouble),
        gradient=meant(lab),
        conditions={**lab.conditions, **interpreter_cell(lab.target, _raised(findings))},
        measured=measured,
        assumptions=tuple(dict.fromkeys((*surroundings.assumptions(lab), *_assumed(findings)))),
        explored=explored,
        coverage=surroundings.covered(lab, asked=options.coverage),
    )
    return Report(findings=findings, subjects=[subject], notes=notes(lab))


def _assumed(findings: Sequence[Finding]) -> list[str]:
    """Sentences that findings say have to hold, accepted or not."""
    return [f.evidence["assumption"] for f in findings if "assumption" in f.evidence]


def _raised(findings: Sequence[Finding]) -> str:
    return next((f.message for f in findings if catalog.find(f.rule).stops), "")


def _probe(lab: Lab, options: Options) -> tuple[list[Finding], str]:
    """Run the probes in order of their codes, as far as the budget goes. A subject that cannot run at all ends it."""
    findings: list[Finding] = []
    troubles: list[str] = []
    later = False
    with lab.budget.whole() as whole:
        for rule in _asked(lab, options):
            # A backward that raises leaves nothing to measure; only the contract, and its kernels, can still say why it raises.
            failing = verdict.stopped(findings, "measuring")
            if out_of_time() or later:
                lab.left_out.append(rule.name)
                continue
            if failing and rule.family not in ("contract", "kernels"):
                continue
            before = len(findings)
            lab.forget_runs()
            stages.trying(f"{lab.target.name}: {rule.name}")
            try:
                with lab.budget.share(whole):
                    for found in rule.probe(lab) if rule.probe is not None else ():
                        findings.append(_reproducible(rule.stamped(found, "check"), lab))
            except Spent:
                lab.left_out.append(rule.name)
            except Exception as error:  # a probe met user code it did not foresee: say so, do not pass
                del findings[before:]
                if isinstance(error, NotNearby) and "gradient" in vars(lab):
                    continue  # the gradient was judged; a step that cannot be measured costs that step
                if options.debug and not failing:
                    raise
                if not failing:
                    nearby = isinstance(error, NotNearby)
                    troubles.append(str(error) if nearby else f"the probe for {rule.name} stopped: {one_line(error)}")
            if len(findings) > before and rule.stops == "everything":
                return findings, "forward raises on these inputs, or returns no tensor"
            if len(findings) > before and rule.outcome == "wrong":
                lab.budget.once_wrong(whole)
            later = later or (rule.outcome == "wrong" and lab.budget.expensive and at_first_look())
    if lab.gradient_unsettled and out_of_time():
        troubles.append(OUT_OF_TIME)
    elif lab.gradient_unsettled:
        troubles.append(f"{lab.budget.words}, and {lab.budget.for_gradient().runs} runs do not settle the gradient")
    return findings, "; ".join(list(dict.fromkeys(troubles))[:2])


def _asked(lab: Lab, options: Options) -> Iterator[catalog.Rule]:
    """The rules with a probe that apply at this level, to this kind of gradient and to this example."""
    reached = LEVELS.index(options.level)
    kind = known(lab.surrogate) if lab.surrogate else None
    for rule in _rules(options):
        if rule.probe is None or LEVELS.index(rule.level) > reached or (kind and frees(kind, rule.waived_by)):
            continue
        if lab.gradient_alone and not rule.stops and rule.outcome != "wrong":
            continue
        if rule.family == "transforms" and not lab.first:
            continue  # how a subject is compiled or vectorised does not depend on the example
        yield rule


def _rules(options: Options) -> list[catalog.Rule]:
    return catalog.chosen(options.select, options.ignore, preview=options.preview)


def _reproducible(finding: Finding, lab: Lab) -> Finding:
    from gradsmith.lab.snippet import reproduction

    if finding.reproduce:
        return finding
    return replace(finding, reproduce=reproduction(finding, lab, catalog.find(finding.rule).demonstration))


def _lab(target: Target, arguments: Arguments, options: Options) -> Lab:
    meant = declared(target, options)
    settings = Settings(options.seed, options.rtol, options.atol, options.reference, options.project)
    return Lab(
        target,
        arguments,
        settings,
        options.level,
        meant.surrogate,
        meant.approximate,
        meant.like,
        options.second_order,
        options.isolated,
        options.empty,
    )


def worst_of_each(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """One row of the compatibility matrix from those of several examples.

    >>> worst_of_each([{"vmap": "works"}, {"vmap": "fails: a different result"}])
    {'vmap': 'fails: a different result'}
    """
    order = ("fails", "not supported", "works", "not tried")
    merged: dict[str, str] = {}
    for row in rows:
        for condition, state in row.items():
            states = [s for s in (merged.get(condition), state) if s is not None]
            merged[condition] = min(states, key=lambda s: order.index(s.partition(":")[0]))
    return merged


def _source_findings(target: Target, options: Options) -> list[Finding]:
    """What the source lens says of this Function, where its source can be read."""
    if target.function is None or target.path is None:
        return []
    from gradsmith.linting import lint, lint_source
    from gradsmith.source.loaded import cell_named

    cell = cell_named(target.path)
    chosen: dict[str, Any] = {"select": options.select, "ignore": options.ignore, "preview": options.preview}
    try:
        report = lint_source(cell.text, target.path, **chosen) if cell is not None else lint([target.path], **chosen)
    except GradsmithError:
        return []
    kind = declared(target, options).surrogate
    mine = [f for f in report.findings if f.function == target.name]
    return [f for f in mine if kind is None or not frees(kind, catalog.find(f.rule).waived_by)]

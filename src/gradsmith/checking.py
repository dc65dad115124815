"""`gs.check`: put a subject on the bench, run every probe of the catalogue, and give a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gradsmith import catalog
from gradsmith.findings import Finding, GradsmithError, InputsFrom, Report, Subject, fold, merge, one_line
from gradsmith.inputs.code import as_code
from gradsmith.inputs.declared import built, declared
from gradsmith.lab import Arguments, Lab, Settings, Target, resolve
from gradsmith.lab.binding import Example, bound, moved_to, unusable
from gradsmith.lab.cells import cell_number
from gradsmith.lab.foreign import interpreter_cell, interpreter_note
from gradsmith.lab.gradient import NotNearby
from gradsmith.lab.state import preserved, seed_all
from gradsmith.lab.surrogates import waived
from gradsmith.lab.values import widened
from gradsmith.lab.variations.judging import rejected
from gradsmith.steps import walk

LEVELS = ("quick", "standard", "deep")
GRADIENTS = ("exact", "surrogate", "approximate")


@dataclass(frozen=True)
class Options:
    """How to check: everything `gs.check` takes besides the subject and its inputs."""

    gradient: str | None = None
    like: Callable[..., Any] | None = None
    level: str = "standard"
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    reference: Callable[..., Any] | None = None
    project: Callable[..., Any] | None = None
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    debug: bool = False
    lint: bool = True
    second_order: bool = False
    steps: bool = False
    isolated: bool = False  # in a process of its own, where a crash costs one subject
    empty: bool = True  # try tensors without elements there; off once they have crashed the subject
    recorded: str | None = None  # a file written by `gradsmith record --save`

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise GradsmithError(f"level={self.level!r} is unknown; {catalog.nearest(self.level, LEVELS)}")
        if self.gradient is not None and self.gradient not in GRADIENTS:
            raise GradsmithError(f"gradient={self.gradient!r} is unknown; {catalog.nearest(self.gradient, GRADIENTS)}")


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
) -> Report:
    """Is the gradient of `fn` right? Runs it, provokes it, and names what is wrong and where.

    `fn` is a Function class, its `.apply`, a custom op, an nn.Module or any callable. Without inputs, the declared
    ones are used. `gradient` says what the gradient is meant to be: "exact" (the default), "surrogate" or
    "approximate". `isolate=True` runs the check in a process of its own, which survives crashes and hangs.
    `second_order=True` demands that the second derivative is right, too.

    >>> import torch
    >>> report = check(torch.tanh, torch.randn(3, dtype=torch.float64, requires_grad=True))
    >>> report.ok
    True
    """
    options = Options(
        gradient,
        like,
        level,
        seed,
        rtol,
        atol,
        reference,
        project,
        tuple(select),
        tuple(ignore),
        second_order=second_order,
        steps=steps,
    )
    if isolate:
        from gradsmith.lab.isolation import check_isolated

        return check_isolated(fn, inputs, dict(kwargs or {}), options)
    target = resolve(fn)
    if inputs or kwargs:
        return examine(target, [(tuple(inputs), dict(kwargs or {}))], "given", options)
    return examine_declared(target, options)


def examine_declared(target: Target, options: Options, module: Any = None, device: Any = None) -> Report:
    """Check a subject on the inputs its author declared, moved to `device` where one is asked for."""
    import sys

    home = module or sys.modules.get(getattr(target.function or target.original, "__module__", ""))
    builders = declared(target.function or target.original, home, target.name)
    if not builders:
        return _examine_undeclared(target, options, device)
    examples: list[Example] = []
    for builder in builders:
        with preserved():
            seed_all(options.seed)
            try:
                examples.append(moved_to(built(builder), device))
            except Exception as error:  # the user's declaration: report their error, not a traceback of ours
                line = getattr(getattr(builder, "__code__", None), "co_firstlineno", None)
                at = f" (line {line})" if line else ""
                return unverified(target, f"the declared inputs{at} raise {one_line(error)}")
    from gradsmith.inputs.modules import examine_built_modules, is_module_class

    if is_module_class(target.original):
        return examine_built_modules(target, examples, options, "declared")
    return examine(target, examples, "declared", options)


def _examine_undeclared(target: Target, options: Options, device: Any) -> Report:
    """Recorded inputs where there are some, else guessed ones."""
    import sys

    from gradsmith.inputs.guessed import examine_guessed
    from gradsmith.inputs.modules import examine_guessed_module, examine_recorded_module, is_module_class

    if is_module_class(target.original):
        return examine_recorded_module(target, options, device) or examine_guessed_module(target, options, device)
    if options.recorded is not None:
        from gradsmith.inputs.recorded_file import examples_in

        if stored := examples_in(Path(options.recorded), target.name, options.seed):
            return examine(target, [moved_to(example, device) for example in stored], "recorded", options)
    recording = sys.modules.get("gradsmith.recording.tape")
    tape = recording.latest() if recording is not None else None
    if tape is not None and target.function is not None and target.function in tape.functions:
        from gradsmith.inputs.recorded import check_recorded

        return check_recorded(tape, target.function, options)
    return examine_guessed(target, options, device)


def examine(target: Target, examples: Sequence[Example], source: InputsFrom, options: Options) -> Report:
    """Check a subject on each example; the verdict is the worst of them."""
    reports = [
        _examine_one(target, args, kwargs, source, options, number) for number, (args, kwargs) in enumerate(examples)
    ]
    order = ("refuted", "unverified", "skipped", "verified")
    worst = min((r.subjects[0] for r in reports), key=lambda s: order.index(s.verdict))
    found = [f for report in reports for f in report.findings]
    findings = merge(sorted(found, key=lambda f: f.severity != "error"))  # of twins, the first gives the message
    findings = merge([*findings, *_source_findings(target, options)]) if options.lint else findings
    if target.path is not None and (cell := cell_number(target.path)) is not None:
        findings = [replace(f, cell=f.cell or cell) if f.path == target.path else f for f in findings]
    conditions = worst_of_each([report.subjects[0].conditions for report in reports])
    verdict = replace(_verdict(worst, fold(findings)), conditions=conditions)
    notes = list(dict.fromkeys(note for report in reports for note in report.notes))
    return Report(findings=fold(findings), subjects=[verdict], functions=1, files=1, notes=notes)


def unverified(target: Target, reason: str, findings: Iterable[Finding] = ()) -> Report:
    subject = Subject(target.name, "unverified", reason, target.path, target.line)
    subject = replace(subject, conditions=interpreter_cell(target, reason))
    return Report(findings=list(findings), subjects=[subject], functions=1, files=1)


def declaration(target: Target) -> str:
    """The one line a user has to write so that gradsmith can run the subject."""
    names = ", ".join(name.rstrip("*") for name in target.names) or "..."
    return f'gradsmith_inputs = {{"{target.name}": lambda: ({names},)}}'


def _examine_one(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], source: InputsFrom, options: Options, number: int
) -> Report:
    with preserved(*args, *kwargs.values(), target.module):
        target, arguments = bound(target, args, kwargs)
        subject = Subject(
            target.name,
            "unverified",
            "",
            target.path,
            target.line,
            source,
            as_code(arguments),
            options.gradient or "exact",
        )
        if reason := unusable(arguments):
            return Report(subjects=[replace(subject, reason=reason)])
        lab = _lab(target, arguments, options)
        lab.declared_at = (target.name, number) if source == "declared" else None
        lab.first = number == 0
        with lab.guarded():
            return _examined(lab, subject, options)


def _examined(lab: Lab, subject: Subject, options: Options) -> Report:
    measured: dict[str, Any] = {"steps": [asdict(step) for step in walk(lab)]} if options.steps else {}
    findings, trouble = _probe(lab, options)
    if left_out := rejected(lab):
        measured["rejected variations"] = left_out
    raises = any(f.rule == "backward-raised" for f in findings)
    if not trouble and not raises and not any(f.severity == "error" for f in findings):
        trouble = _inconclusive(lab)
    verdict = replace(
        subject,
        reason=trouble,
        verdict="unverified" if trouble else "verified",
        gradient=_meant(lab),
        conditions={**lab.conditions, **interpreter_cell(lab.target, _raised(findings))},
        measured=measured,
    )
    return Report(findings=findings, subjects=[verdict], notes=_notes(lab))


def _raised(findings: Sequence[Finding]) -> str:
    return next((f.message for f in findings if f.rule in ("forward-raised", "backward-raised")), "")


def _probe(lab: Lab, options: Options) -> tuple[list[Finding], str]:
    """Run the probes in order of their codes. A subject that cannot run at all ends the examination."""
    findings: list[Finding] = []
    troubles: list[str] = []
    reached = LEVELS.index(options.level)
    free = waived(lab.surrogate) if lab.surrogate else frozenset[str]()
    for rule in catalog.chosen(options.select, options.ignore):
        if rule.probe is None or LEVELS.index(rule.level) > reached or rule.name in free:
            continue
        if rule.family == "transforms" and not lab.first:
            continue  # how a subject is compiled or vectorised does not depend on the example
        # A backward that raises leaves nothing to measure; only the contract can still say why it raises.
        failing = any(f.rule == "backward-raised" for f in findings)
        if failing and rule.family != "contract":
            continue
        try:
            found = [_reproducible(rule.stamped(f, "check"), lab) for f in rule.probe(lab)]
        except Exception as error:  # a probe met user code it did not foresee: say so, do not pass
            if options.debug and not failing:
                raise
            if not failing:
                nearby = isinstance(error, NotNearby)
                troubles.append(str(error) if nearby else f"the probe for {rule.name} stopped: {one_line(error)}")
            continue
        findings.extend(found)
        if found and rule.name == "forward-raised":
            return findings, "forward raises on these inputs, or returns no tensor"
    return findings, "; ".join(list(dict.fromkeys(troubles))[:2])


def _reproducible(finding: Finding, lab: Lab) -> Finding:
    from gradsmith.lab.snippet import reproduction

    return finding if finding.reproduce else replace(finding, reproduce=reproduction(finding, lab))


def _inconclusive(lab: Lab) -> str:
    """Why the examination proves nothing, although nothing was found."""
    if lab.surrogate:
        return ""
    judgement = lab.gradient
    if not judgement.pairs:
        if stored := judgement.run.not_computable:
            return f"torch does not compute in the type of the output, {_type_name(judgement.run.outputs[stored[0]])}"
        return "no output carries a gradient"
    if noisy := judgement.noisy:
        if not all(bool(widened(o).isfinite().any()) for o in judgement.run.outputs if o.numel()):
            return "the outputs are NaN or infinite at these inputs"
        names = ", ".join(dict.fromkeys(f"'{p.leaf.name}'" for p in noisy))
        return f"numeric noise is too wide to judge the gradient of {names}"
    return ""


def _verdict(worst: Subject, findings: Sequence[Finding]) -> Subject:
    mine = [f for f in findings if f.function == worst.name or "check" in f.lenses]
    errors = [f for f in mine if f.severity == "error" and f.blame == "user" and f.rule not in UNRUN]
    if errors:
        names = ", ".join(dict.fromkeys(f.rule for f in errors))
        return replace(worst, verdict="refuted", reason=names)
    if any(g.rule == "undeclared-surrogate" for f in mine for g in (f, *f.symptoms)):
        return replace(worst, verdict="unverified", reason="looks like a surrogate gradient; declare it")
    if any(f.rule == "random-backward" and "check" in f.lenses for f in mine):
        return replace(worst, verdict="unverified", reason="the gradient is drawn at random; declare it")
    if any(f.rule == "backward-raised" for f in mine):
        return replace(worst, verdict="unverified", reason="backward raises here, and so nothing was measured")
    return worst


UNRUN = frozenset({"forward-raised", "import-failed", "crashed", "timed-out", "out-of-memory"})


def _lab(target: Target, arguments: Arguments, options: Options) -> Lab:
    from gradsmith.lab.declarations import declaration_of

    stated = declaration_of(target)
    surrogate = stated.surrogate
    if options.gradient == "surrogate":
        surrogate = surrogate or "custom"
    elif options.gradient is not None:
        surrogate = None
    settings = Settings(options.seed, options.rtol, options.atol, options.reference, options.project)
    approximate = options.gradient == "approximate" or (options.gradient is None and stated.approximate)
    like = options.like or stated.like
    return Lab(
        target,
        arguments,
        settings,
        options.level,
        surrogate,
        approximate,
        like,
        options.second_order,
        options.isolated,
        options.empty,
    )


def _meant(lab: Lab) -> str:
    return "surrogate" if lab.surrogate else "approximate" if lab.approximate else "exact"


def worst_of_each(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """One row of the compatibility matrix from those of several examples.

    >>> worst_of_each([{"vmap": "works"}, {"vmap": "fails: another result"}])
    {'vmap': 'fails: another result'}
    """
    order = ("fails", "not supported", "works", "not tried")
    merged: dict[str, str] = {}
    for row in rows:
        for condition, state in row.items():
            states = [s for s in (merged.get(condition), state) if s is not None]
            merged[condition] = min(states, key=lambda s: order.index(s.partition(":")[0]))
    return merged


def _notes(lab: Lab) -> list[str]:
    notes = interpreter_note(lab.target)
    judgement = lab.__dict__.get("gradient")
    if judgement is not None:
        for pair in judgement.pairs:
            if pair.explained:
                notes.append(
                    f"{lab.target.name}: the gradient of '{pair.leaf.name}' is right for {pair.explained} inputs"
                )
        if lab.stochastic:
            notes.append(f"{lab.target.name}: forward draws random numbers; it was checked under a replayed seed")
        for o in judgement.run.not_computable if judgement.pairs else ():
            kind = _type_name(judgement.run.outputs[o])
            notes.append(
                f"{lab.target.name}: the gradient through {judgement.run.output_names[o]} was not judged: torch does not "
                f"compute in {kind}"
            )
        corners = sum(len(p.corners) for p in judgement.pairs)
        if corners:
            notes.append(f"{lab.target.name}: {corners} corner(s) judged by the interval of their one-sided slopes")
        if singular := [f"{p.leaf.name}{list(at)}" for p in judgement.pairs for at in sorted(p.singular)]:
            told = ", ".join(dict.fromkeys(singular[:5]))
            notes.append(f"{lab.target.name}: forward has no finite slope at {told}: left out, the others were judged")
    return notes


def _type_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _source_findings(target: Target, options: Options) -> list[Finding]:
    """What the source lens says of this Function, where its source can be read."""
    if target.function is None or target.path is None:
        return []
    from gradsmith.lab.cells import cell_text
    from gradsmith.linting import lint, lint_source

    cell = cell_text(target.path)
    try:
        if cell:
            report = lint_source(cell, target.path, select=options.select, ignore=options.ignore)
        else:
            report = lint([target.path], select=options.select, ignore=options.ignore)
    except GradsmithError:
        return []
    return [f for f in report.findings if f.function == target.name]

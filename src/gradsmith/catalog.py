"""The catalogue: finds every rule under rules/, and answers what is known about each.

A rule is one file `rules/<family>/<rule_name>.py`; dropping a file there is all the registration there is. Other packages
bring rules by entry point (rule_packages.py); what is wrong with one of them is a sentence, and never a broken run.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from gradsmith import codes
from gradsmith.findings import Finding, GradsmithError, Lens, Severity, one_line
from gradsmith.nearest import nearest
from gradsmith.rule_packages import RulePackage, installed
from gradsmith.rule_shape import fault

if TYPE_CHECKING:
    from gradsmith.lab import Lab
    from gradsmith.source import FileModel, FunctionModel, LayerModel

FAMILIES: Mapping[str, tuple[str, str]] = {
    "run": ("GS0", "the subject could not be examined"),
    "contract": ("GS1", "PyTorch raises, or ignores what you wrote"),
    "silent": ("GS2", "runs, and is wrong"),
    "numerics": ("GS3", "wrong for some values, shapes or dtypes"),
    "memory": ("GS4", "keeps more memory than it needs"),
    "speed": ("GS5", "slower than it needs to be"),
    "transforms": ("GS6", "breaks under compile, vmap, autocast, checkpoint or DDP"),
    "recurrent": ("GS7", "loops over time"),
    "needless": ("GS8", "you do not need a custom Function"),
    "tests": ("GS9", "tests that prove nothing"),
    "kernels": ("GSK", "Triton kernels: memory and races"),
}
HEADINGS = ("What it finds", "Why it matters", "Known problems", "References")


@dataclass(frozen=True)
class Rule:
    """Everything known about one defect, read from its file."""

    name: str
    code: str
    family: str
    severity: Severity
    title: str
    page: str
    bad: str
    good: str
    explains: tuple[str, ...]
    fixable: bool
    lint: Callable[[FunctionModel], Iterator[Finding]] | None
    lint_layer: Callable[[LayerModel], Iterator[Finding]] | None
    lint_file: Callable[[FileModel], Iterator[Finding]] | None
    probe: Callable[[Lab], Iterator[Finding]] | None
    level: str
    profile: Callable[[Any], Iterator[Finding]] | None
    triggers: tuple[str, ...] = ()  # words without one of which lint_file finds nothing in a file
    beside: Mapping[str, str] = field(default_factory=dict)  # of a trigger: a word that those files must hold, too
    in_paths: str = ""  # the triggers are looked for only in files in whose path this stands
    asks: tuple[str, ...] = ()  # words for which it looks in every file of the project
    asks_names_in: tuple[str, ...] = ()  # words of files in which it looks for names
    after_others: bool = False  # its source lens judges what became of the other rules' findings
    event: str = ""  # what happened where no probe ran: forward, backward, import, crash, time, memory
    # What it says of the gradient: wrong, second order, surrogate, none, shape, unreduced, count, raises, forward raises.
    outcome: str = ""
    refutes: bool = True  # whether an error refutes the subject, or only leaves it unexamined
    unproven: str = ""  # why a subject with such a finding is not verified, though nothing refutes it
    stops: str = ""  # what cannot be done once it was found: measuring, everything
    writes_in: str = ""  # forward or backward: where the write happens that the rule is about
    needs_tensor: bool = False  # true only if the argument it names is a tensor, which a guess cannot know
    waived_by: tuple[str, ...] = ()  # kinds of surrogate that are free of it; "surrogate" stands for every kind
    demonstration: str = "gradient"  # the script in plain PyTorch that shows it again
    causes: str = ""  # the package that describes the kinds of this defect, one in a file
    absorbs: Callable[[Finding, Finding], bool] | None = None  # whether one of its findings takes in another one
    state: Literal["preview", "stable", "deprecated"] = "stable"  # those that are not stable run only if named
    replaced_by: str = ""  # the rule to use instead of a deprecated one
    fixed_in: str = ""  # of a defect of PyTorch's own: the first version that was seen to be free of it
    package: str = ""  # the distribution that brings it; none: gradsmith itself

    @property
    def lenses(self) -> tuple[Lens, ...]:
        """The ways in which this rule can see its defect."""
        seen: list[Lens] = []
        if self.lint or self.lint_layer or self.lint_file:
            seen.append("lint")
        if self.probe or self.event:
            seen.append("check")
        if self.profile:
            seen.append("profile")
        return tuple(seen)

    @property
    def letters(self) -> str:
        """What its code begins with; every package has letters of its own."""
        return self.code.rstrip("0123456789")

    def section(self, heading: str) -> str:
        """The text of the rule's page under one of the fixed headings."""
        match = re.search(rf"^{heading}\n-+\n(.*?)(?=^[^\n]+\n-+\n|\Z)", self.page, re.M | re.S)
        return match.group(1).strip() if match else ""

    def stamped(self, finding: Finding, lens: Lens) -> Finding:
        """The finding with this rule's name, code and default severity, where it has none of its own."""
        return replace(
            finding,
            rule=self.name,
            code=self.code,
            severity=finding.severity or self.severity,
            lenses=finding.lenses or (lens,),
        )


@dataclass(frozen=True)
class _Catalogue:
    rules: dict[str, Rule] = field(default_factory=dict)
    families: dict[str, tuple[str, str]] = field(default_factory=lambda: dict(FAMILIES))
    left_out: dict[str, str] = field(default_factory=dict)  # a name or code in small letters, and why it is not here
    troubles: list[str] = field(default_factory=list)

    def add(self, package: RulePackage) -> None:
        """The rules of another package, as far as they can be used."""
        if package.name in {*self.families, *self.rules, "all"}:
            self._leave_out(package, f"{package.name!r} is the name of a family or a rule already", package.name)
            return
        try:
            title, modules = package.load()
        except GradsmithError as error:
            self._leave_out(package, str(error), package.name)
            return
        except (Exception, SystemExit) as error:  # code of others, of which anything can be expected
            self._leave_out(package, f"importing {package.module} raises {one_line(error)}", package.name)
            return
        found: list[Rule] = []
        for name in modules:
            found += self._usable(package, name, found)
        if not found:
            self._leave_out(package, "none of them can be used", package.name)
            return
        self.families[package.name] = (found[0].letters, title or f"rules of {package.distribution}")
        found.sort(key=lambda rule: rule.code)
        self.rules.update({rule.name: rule for rule in found})

    def _usable(self, package: RulePackage, full_name: str, before: Sequence[Rule]) -> list[Rule]:
        """The rule in this module, or nothing; `before` are those of the same package."""
        name = full_name.rpartition(".")[2].replace("_", "-")
        try:
            module = importlib.import_module(full_name)
        except (Exception, SystemExit) as error:
            self._leave_out(package, f"importing it raises {one_line(error)}", name, rule=name)
            return []
        if trouble := fault(module):
            self._leave_out(package, trouble, name, rule=name)
            return []
        rule = replace(_read(module, package.name), package=package.distribution)
        if trouble := self._clash(rule, before):
            self._leave_out(package, trouble, name, rule.code, rule.letters, rule=name)
            return []
        return [rule]

    def _clash(self, rule: Rule, before: Sequence[Rule]) -> str:
        """What the rule has in common with one that is here already, and must not."""
        if rule.letters in codes.OURS:
            return f"its code {rule.code} begins with {rule.letters}, which is gradsmith's own; use other letters"
        for other in before:
            if other.code == rule.code:
                return f"its code {rule.code} is that of {other.name}, too"
            if other.letters != rule.letters:
                return f"its code {rule.code} does not begin with {other.letters}, as that of {other.name} does"
        if rule.name in self.rules:
            return f"{_owner(self.rules[rule.name])} has a rule of that name"
        for other in self.rules.values():
            if other.letters == rule.letters:
                return f"its code {rule.code} begins with {rule.letters}, as those of {_owner(other)} do"
            if other.event and other.event == rule.event:
                return f"its EVENT {rule.event!r} is that of {other.name}"
        return ""

    def _leave_out(self, package: RulePackage, why: str, *asked: str, rule: str = "") -> None:
        what = f"rule {rule} of {package} is" if rule else f"the rules of {package} (entry point {package.name!r}) are"
        for name in asked:
            self.left_out.setdefault(name.lower(), f"{what} left out: {why}")
        self.troubles.append(f"{what} left out: {why}")


def _owner(rule: Rule) -> str:
    return rule.package or "gradsmith"


@functools.cache
def _catalogue() -> _Catalogue:
    import gradsmith.rules

    found = []
    for family in pkgutil.iter_modules(gradsmith.rules.__path__):
        if not family.ispkg:
            continue
        package = importlib.import_module(f"gradsmith.rules.{family.name}")
        for item in pkgutil.iter_modules(package.__path__):
            found.append(_read(importlib.import_module(f"{package.__name__}.{item.name}"), family.name))
    found.sort(key=lambda rule: rule.code)
    whole = _Catalogue({rule.name: rule for rule in found})
    for other in installed():
        whole.add(other)
    return whole


def rules() -> Mapping[str, Rule]:
    """Every rule by name: ours in the order of their codes, then those of other packages."""
    return _catalogue().rules


def families() -> Mapping[str, tuple[str, str]]:
    """Every family, the letters and digits its codes begin with, and its meaning; another package's rules are one."""
    return _catalogue().families


def notes(used: Iterable[Rule] = ()) -> list[str]:
    """What a report has to say about rules: which cannot be used, and which of those used are deprecated."""
    old = [rule for rule in used if rule.state == "deprecated"]
    return [
        *_catalogue().troubles,
        *(f"{rule.name} ({rule.code}) is {status(rule)}" for rule in old),
    ]


def status(rule: Rule) -> str:
    """The state of a rule, and what that means.

    >>> status(find("inplace-grad"))
    'stable'
    """
    if rule.state == "preview":
        return "preview: it runs with --preview, or where it is named"
    if rule.state == "deprecated":
        return "deprecated: " + (f"use {rule.replaced_by} instead" if rule.replaced_by else "it will be removed")
    return rule.state


@functools.cache
def explained_by(name: str) -> frozenset[str]:
    """Names of the rules that say of `name`: where I am found, that one is only a symptom."""
    return frozenset(rule.name for rule in rules().values() if name in rule.explains)


def find(name: str) -> Rule:
    """The rule with this name or code; otherwise an error that says why it cannot be used, or offers the nearest one."""
    rule = _known(name)
    if rule is None:
        known = [*rules(), *(rule.code for rule in rules().values())]
        raise GradsmithError(left_out(name) or f"no rule is called {name!r}; {nearest(name, known)}")
    return rule


def _known(name: str) -> Rule | None:
    named = rules().get(name) or rules().get(name.lower().replace("_", "-"))
    return named or next((rule for rule in rules().values() if rule.code == name.upper()), None)


def left_out(name: str) -> str:
    """Why another package's rule, or all of them, cannot be used; nothing where nobody has such a rule."""
    return _catalogue().left_out.get(name.lower().replace("_", "-"), "")


def for_event(event: str) -> Rule:
    """The rule that reports what happened to a subject where no probe could run."""
    return next(rule for rule in rules().values() if rule.event == event)


def chosen(select: Sequence[str] = (), ignore: Sequence[str] = (), *, preview: bool = False) -> list[Rule]:
    """The rules that `--select` and `--ignore` leave: names, codes, beginnings of codes (GS2) or families.

    Rules in preview are among them with `preview`, or where they are selected by name or code; deprecated ones only so.
    """
    unwanted = ignored(ignore)
    run = {"stable", "preview"} if preview else {"stable"}
    wanted = _matching(select or ("all",)).values()
    return [m.rule for m in wanted if m.rule.name not in unwanted and (m.named or m.rule.state in run)]


def listed(select: Sequence[str] = ()) -> list[Rule]:
    """The rules that `select` means, whatever their state."""
    return [match.rule for match in _matching(select or ("all",)).values()]


def ignored(patterns: Sequence[str]) -> frozenset[str]:
    """Names of the rules to leave out. One that cannot be used anyway may be among them."""
    unusable = {p for p in patterns if _group(p) is None and _known(p) is None and left_out(p)}
    return frozenset(_matching([p for p in patterns if p not in unusable]))


@dataclass(frozen=True)
class _Match:
    rule: Rule
    named: bool  # by its own name or code, not with others


def _matching(patterns: Sequence[str]) -> dict[str, _Match]:
    found: dict[str, _Match] = {}
    for pattern in patterns:
        together = _group(pattern)
        matches = [_Match(find(pattern), True)] if together is None else [_Match(rule, False) for rule in together]
        for match in matches:
            if match.named or match.rule.name not in found:
                found[match.rule.name] = match
    return {name: found[name] for name in rules() if name in found}


def _group(pattern: str) -> list[Rule] | None:
    """The rules that a family, the beginning of their codes or the word `all` means; None: it must name one rule."""
    known = list(rules().values())
    if pattern in families():
        return [rule for rule in known if rule.family == pattern]
    if pattern.lower() == "all":
        return known
    written = codes.read(pattern)
    if written is None or pattern.upper() in {rule.code for rule in known}:
        return None
    hits = [rule for rule in known if codes.begins(rule.code, pattern)]
    # Of ours, a group may be empty: GSK has no rule yet.
    return hits if hits or len(written.digits) < codes.OURS.get(written.letters, 0) else None


def _beside(module: ModuleType) -> Mapping[str, str]:
    """`BESIDE` is one word for all triggers, or names those that have one."""
    beside: str | Mapping[str, str] = getattr(module, "BESIDE", {})
    return dict.fromkeys(module.TRIGGERS, beside) if isinstance(beside, str) else beside


def _read(module: ModuleType, family: str) -> Rule:
    doc = (module.__doc__ or "").strip()
    title, _, page = doc.partition("\n")
    return Rule(
        name=module.__name__.rpartition(".")[2].replace("_", "-"),
        code=module.CODE,
        family=family,
        severity=module.SEVERITY,
        title=title.strip().rstrip("."),
        page=page.strip(),
        bad=module.BAD,
        good=module.GOOD,
        explains=tuple(getattr(module, "EXPLAINS", ())),
        fixable=bool(getattr(module, "FIXABLE", False)),
        lint=getattr(module, "lint", None),
        lint_layer=getattr(module, "lint_layer", None),
        lint_file=getattr(module, "lint_file", None),
        probe=getattr(module, "probe", None),
        level=getattr(module, "LEVEL", "quick"),
        profile=getattr(module, "profile", None),
        triggers=tuple(getattr(module, "TRIGGERS", ())),
        beside=_beside(module),
        in_paths=getattr(module, "IN_PATHS", ""),
        asks=tuple(getattr(module, "ASKS", ())),
        asks_names_in=tuple(getattr(module, "ASKS_NAMES_IN", ())),
        after_others=bool(getattr(module, "AFTER_OTHERS", False)),
        event=getattr(module, "EVENT", ""),
        outcome=getattr(module, "OUTCOME", ""),
        refutes=bool(getattr(module, "REFUTES", True)),
        unproven=getattr(module, "UNPROVEN", ""),
        stops=getattr(module, "STOPS", ""),
        writes_in=getattr(module, "WRITES_IN", ""),
        needs_tensor=bool(getattr(module, "NEEDS_TENSOR", False)),
        waived_by=tuple(getattr(module, "WAIVED_BY", ())),
        demonstration=getattr(module, "DEMONSTRATION", "gradient"),
        causes=getattr(module, "CAUSES", ""),
        absorbs=getattr(module, "absorbs", None),
        state=getattr(module, "STATE", "stable"),
        replaced_by=getattr(module, "REPLACED_BY", ""),
        fixed_in=getattr(module, "FIXED_IN", ""),
    )

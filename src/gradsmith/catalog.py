"""The catalogue: finds every rule under rules/, and answers what is known about each.

A rule is one file `rules/<family>/<rule_name>.py`; dropping a file there is all the registration there is.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradsmith.findings import Finding, GradsmithError, Lens, Severity

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


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Every rule by name, in the order of their codes."""
    import gradsmith.rules

    found = []
    for family in pkgutil.iter_modules(gradsmith.rules.__path__):
        if not family.ispkg:
            continue
        package = importlib.import_module(f"gradsmith.rules.{family.name}")
        for item in pkgutil.iter_modules(package.__path__):
            found.append(_read(importlib.import_module(f"{package.__name__}.{item.name}"), family.name))
    found.sort(key=lambda rule: rule.code)
    return {rule.name: rule for rule in found}


@functools.cache
def explained_by(name: str) -> frozenset[str]:
    """Names of the rules that say of `name`: where I am found, that one is only a symptom."""
    return frozenset(rule.name for rule in rules().values() if name in rule.explains)


def find(name: str) -> Rule:
    """The rule with this name or code; otherwise an error that offers the nearest one."""
    known = rules().get(name) or rules().get(name.lower().replace("_", "-"))
    if known is not None:
        return known
    by_code = {rule.code: rule for rule in rules().values()}
    rule = by_code.get(name.upper())
    if rule is None:
        raise GradsmithError(f"no rule is called {name!r}; {nearest(name, [*rules(), *by_code])}")
    return rule


def for_event(event: str) -> Rule:
    """The rule that reports what happened to a subject where no probe could run."""
    return next(rule for rule in rules().values() if rule.event == event)


def nearest(name: str, known: Iterable[str]) -> str:
    """A half sentence that offers what was probably meant.

    >>> nearest("inplce-grad", ["inplace-grad", "return-count"])
    "did you mean 'inplace-grad'?"
    """
    import difflib

    known = list(known)
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4) or difflib.get_close_matches(
        name.upper(), known, n=1, cutoff=0.6
    )
    return f"did you mean {close[0]!r}?" if close else "`gradsmith rules` lists them all"


def chosen(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Rule]:
    """The rules that `--select` and `--ignore` leave: names, codes, code prefixes (GS2) or families."""
    wanted = _matching(select) if select else list(rules())
    unwanted = set(_matching(ignore))
    return [rules()[name] for name in wanted if name not in unwanted]


def _matching(patterns: Sequence[str]) -> list[str]:
    names: dict[str, None] = {}
    for pattern in patterns:
        if pattern in FAMILIES:
            hits = [r.name for r in rules().values() if r.family == pattern]
        elif re.fullmatch(r"(?i)GS\d{0,2}", pattern):
            hits = [r.name for r in rules().values() if r.code.startswith(pattern.upper())]
        elif pattern.lower() == "all":
            hits = list(rules())
        else:
            hits = [find(pattern).name]
        names.update(dict.fromkeys(hits))
    return [name for name in rules() if name in names]


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
    )

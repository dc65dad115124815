"""One lint run: a first look at the bytes, models of what promises something, the rules over them, the findings."""

from __future__ import annotations

import functools
import gc
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gradsmith.catalog import Rule, ignored, notes
from gradsmith.findings import Finding, Report, Skipped, one_line
from gradsmith.linting import apart, pool
from gradsmith.linting.first_look import LookedAt
from gradsmith.linting.scout import Scout, looked_at
from gradsmith.linting.settle import Found, Subject, settled
from gradsmith.source import FileModel, FunctionModel, Project, notebook, project, scan, tokens
from gradsmith.surrogate_kinds import kind_in

if TYPE_CHECKING:
    from gradsmith.config import Config


@dataclass
class Run:
    """The rules to run, and what came of it."""

    rules: list[Rule]
    config: Config | None = None
    debug: bool = False
    skipped: list[Skipped] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    count: int = 0
    functions: int = 0
    unparsed: set[FileModel] = field(default_factory=set)
    unpromising: list[str] = field(default_factory=list)
    words: dict[FileModel, frozenset[str]] = field(default_factory=dict)
    sizes: dict[FileModel, int] = field(default_factory=dict)
    notebooks: dict[str, notebook.Notebook] = field(default_factory=dict)

    def report(self, sources: Iterable[scan.Seen] | Scout) -> Report:
        """Lint these sources, or what a scout finds."""
        with _quiet():
            look = looked_at(sources, self.rules)
            self.count, self.unpromising = look.count, look.unpromising
            self.skipped += look.skipped
            self.notebooks = look.notebooks
            files = self._load(look.kept).files
            self._lint_all(files)
            findings = settled(self.found, self._last_words([file for file in files if file not in self.unparsed]))
        placed = [self._placed(finding) for finding in findings]
        told = notes(self.rules)
        return Report(findings=placed, skipped=self.skipped, files=self.count, functions=self.functions, notes=told)

    def _load(self, looked_at: Sequence[LookedAt]) -> Project:
        self.words = {seen.file: seen.promise.words for seen in looked_at}
        self.sizes = {seen.file: seen.size for seen in looked_at}
        loaded = project.load(
            [seen.file for seen in looked_at],
            [seen.file for seen in looked_at if seen.promise.function],
            [seen.file for seen in looked_at if seen.promise.layer],
            [seen.file for seen in looked_at if seen.whole or seen.promise.named],
        )
        if self.config is not None and self.config.surrogates:
            loaded.surrogate_of = functools.partial(kind_in, self.config.surrogates)
        return loaded

    def _lint_all(self, files: Sequence[FileModel]) -> None:
        count = pool.processors() if apart.pays(self, files) and not self.debug else 1
        if count > 1:
            apart.lint_in_processes(self, files, count)
        else:
            for file in files:
                self.lint_file(file)

    def lint_file(self, file: FileModel) -> None:
        """Run every rule over one file, unless it cannot be parsed."""
        assert file.project is not None
        if file.changed:
            self.unparsed.add(file)
            self.skipped.append(Skipped(file.path, "changed while it was being linted"))
            return
        functions, layers, words = file.functions, file.layers, self.words[file]
        self.functions += len(functions)
        if file in file.project.unparsed:
            self.unparsed.add(file)
            self.skipped.append(Skipped(file.path, _reason(file.project.unparsed[file], file)))
            return
        for rule in self._rules_in(file):
            if rule.lint and functions and not rule.after_others:
                for function in functions:
                    self._apply(rule, rule.lint, function, file)
            if rule.lint_layer and layers and not rule.after_others:
                for layer in layers:
                    self._apply(rule, rule.lint_layer, layer, file)
            if rule.lint_file and words and not rule.after_others and not words.isdisjoint(rule.triggers):
                self._apply(rule, rule.lint_file, file, file)

    def _rules_in(self, file: FileModel) -> list[Rule]:
        patterns = self.config.ignored_in(file.path) if self.config else ()
        if not patterns:
            return self.rules
        unwanted = ignored(patterns)
        return [rule for rule in self.rules if rule.name not in unwanted]

    def _last_words(self, files: Sequence[FileModel]) -> Callable[[], list[Found]]:
        """The rules that judge what became of the others' findings."""

        def found() -> list[Found]:
            before, self.found = self.found, []
            for file in files:
                rules = self._rules_in(file)
                for rule in rules:
                    if rule.after_others and rule.lint_file and not self.words[file].isdisjoint(rule.triggers):
                        file.comments.ran = frozenset(r.name for r in rules)
                        self._apply(rule, rule.lint_file, file, file)
            late, self.found = self.found, before
            return late

        return found

    def _apply(self, rule: Rule, hook: Callable[[Any], Iterator[Finding]], subject: Subject, file: FileModel) -> None:
        try:
            findings = [rule.stamped(finding, "lint") for finding in hook(subject)]
        except (SyntaxError, RecursionError) as error:
            if self.debug:
                raise
            trouble = Skipped(file.path, _reason(error, file))
            if trouble not in self.skipped:  # every rule stumbles over the same thing
                self.skipped.append(trouble)
            return
        except Exception as error:
            if self.debug:
                raise
            what = f"rule {rule.name} failed on {getattr(subject, 'qualname', 'the file')}"
            self.skipped.append(Skipped(file.path, f"{what}: {one_line(error)} (--debug shows where)"))
            return
        if not findings:
            return
        if isinstance(subject, FunctionModel):
            findings = [f for f in findings if not subject.never_runs(f.path, f.line or 0) and not subject.is_namespace]
            if subject.is_example:
                findings = [replace(f, severity="info") if f.severity == "warning" else f for f in findings]
        found = [Found.of(f, subject, file) for f in findings]
        self.found += [f for f in found if not f.stands_in.is_dead(f.finding.line or 0)]

    def _placed(self, finding: Finding) -> Finding:
        book = self.notebooks.get(finding.path or "")
        return finding if book is None else book.placed(finding)


def _reason(error: BaseException, file: FileModel) -> str:
    if isinstance(error, RecursionError):
        return "is nested, or builds one value upon another, too deeply for some rules"
    if not isinstance(error, SyntaxError):
        return f"cannot be parsed: {one_line(error)}"
    version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    line = error.lineno or 0
    text = file.lines[line - 1] if 0 < line <= len(file.lines) else ""
    hint = f" (read as {version}; newer syntax needs a newer Python)" if tokens.looks_newer(text) else ""
    return f"syntax error at line {line}: {error.msg}{hint}"


@contextmanager
def _quiet() -> Iterator[None]:
    """No collector while millions of syntax nodes are made (a third of the time), no warnings about users' escapes."""
    collecting = gc.isenabled()
    gc.disable()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 3000))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()

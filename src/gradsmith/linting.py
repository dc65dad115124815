"""`gs.lint`: read source, run the rules that can see their defect in it, hide what the author asked to hide."""

from __future__ import annotations

import codecs
import gc
import os
import re
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

from gradsmith.catalog import Rule, chosen
from gradsmith.findings import Finding, Report, Skipped, fold, merge
from gradsmith.source import FileModel, FunctionModel, LayerModel, Project, project, scan

if TYPE_CHECKING:
    from gradsmith.config import Config

# Up to this many bytes every file is parsed whole, so that a syntax error anywhere is reported; beyond it only the
# classes that matter are (the torch package: 0.13 s instead of 6 s).
PARSE_WHOLE_BELOW = 1_000_000
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_NEWER_SYNTAX = re.compile(
    r"^\s*(type\s+\w+|(async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[|except\*)|[fF]['\"]|^\s*match\b"
)


def lint(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    config: Config | None = None,
    debug: bool = False,
) -> Report:
    """Lint files and folders. Nothing is imported or run.

    >>> lint([]).closing_line()
    'nothing to check: no custom gradient found'
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return _Run(_chosen(select, ignore, config), config, debug).report(scan.read_all(given))


def lint_source(
    text: str,
    path: str = "<string>",
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    config: Config | None = None,
    debug: bool = False,
) -> Report:
    """Lint one text as if it were the file `path`.

    >>> lint_source("x = 1").findings
    []
    """
    run = _Run(_chosen(select, ignore, config), config, debug)
    return run.report([scan.SourceFile(path, text.encode("utf-8", "surrogatepass"), named=True)])


def _chosen(select: Sequence[str], ignore: Sequence[str], config: Config | None) -> list[Rule]:
    selected = select or (config.select if config else ())
    ignored = [*ignore, *(config.ignore if config else ())]
    return [rule for rule in chosen(selected, ignored) if "lint" in rule.lenses]


@dataclass(frozen=True)
class _LookedAt:
    """A file, and what its bytes mention."""

    source: scan.SourceFile
    function: bool
    layer: bool
    word: bool
    whole: bool = False

    @property
    def promises(self) -> bool:
        return self.function or self.layer or self.word or self.source.named


@dataclass
class _Run:
    rules: list[Rule]
    config: Config | None = None
    debug: bool = False
    skipped: list[Skipped] = field(default_factory=list)
    found: list[_Found] = field(default_factory=list)
    count: int = 0

    def report(self, sources: Iterable[scan.SourceFile | scan.Unreadable]) -> Report:
        with _quiet():
            looked_at = self._first_look(sources)
            loaded = self._load(looked_at)
            for file, error in loaded.unparsed.items():
                self.skipped.append(Skipped(file.path, _reason(error, file)))
            for file in loaded.files:
                if file not in loaded.unparsed:
                    self._lint(file)
            findings = _settled(self.found)
        functions = sum(len(file.functions) for file in loaded.files)
        return Report(findings=findings, skipped=self.skipped, files=self.count, functions=functions)

    def _first_look(self, sources: Iterable[scan.SourceFile | scan.Unreadable]) -> list[_LookedAt]:
        """What the bytes of each file promise. Others are kept only while there is little to read."""
        words = tuple(dict.fromkeys(w.encode() for rule in self.rules if rule.lint_file for w in rule.triggers))
        any_layer = any(rule.lint_layer for rule in self.rules)
        kept: list[_LookedAt] = []
        total = 0
        for source in sources:
            if isinstance(source, scan.Unreadable):
                self.skipped.append(Skipped(source.path, source.reason))
                continue
            self.count += 1
            small = total <= PARSE_WHOLE_BELOW
            total += len(source.data)
            seen = _LookedAt(
                source,
                scan.mentions_function(source.data),
                any_layer and scan.mentions_layer(source.data),
                scan.mentions_any(source.data, words),
            )
            if seen.promises or small:
                kept.append(seen)
        if total > PARSE_WHOLE_BELOW:
            return [seen for seen in kept if seen.promises]
        return [replace(seen, whole=True) for seen in kept]

    def _load(self, looked_at: Iterable[_LookedAt]) -> Project:
        files, functions, layers, whole = [], [], [], []
        for seen in looked_at:
            path = seen.source.path
            try:
                file = FileModel(path, decoded(seen.source.data))
            except (UnicodeDecodeError, LookupError, SyntaxError) as error:
                self.skipped.append(Skipped(path, f"cannot be decoded: {_first_line(error)}"))
                continue
            files.append(file)
            functions += [file] if seen.function else []
            layers += [file] if seen.layer else []
            whole += [file] if seen.whole or seen.source.named else []
        return project.load(files, functions, layers, whole)

    def _lint(self, file: FileModel) -> None:
        patterns = self.config.ignored_in(file.path) if self.config else ()
        ignored = {rule.name for rule in chosen(patterns)} if patterns else set()
        for rule in self.rules:
            if rule.name in ignored:
                continue
            if rule.lint:
                for function in file.functions:
                    self._apply(rule, rule.lint, function, file)
            if rule.lint_layer:
                for layer in file.layers:
                    self._apply(rule, rule.lint_layer, layer, file)
            if rule.lint_file and file.mentions(*rule.triggers):
                self._apply(rule, rule.lint_file, file, file)

    def _apply(self, rule: Rule, hook: Callable[[Any], Iterator[Finding]], subject: Any, file: FileModel) -> None:
        try:
            findings = [rule.stamped(finding, "lint") for finding in hook(subject)]
        except (SyntaxError, RecursionError) as error:
            if not isinstance(subject, FileModel) or self.debug:
                raise
            self.skipped.append(Skipped(file.path, _reason(error, file)))
            return
        except Exception as error:
            if self.debug:
                raise
            what = f"rule {rule.name} failed on {getattr(subject, 'qualname', 'the file')}"
            self.skipped.append(Skipped(file.path, f"{what}: {_first_line(error)} (--debug shows where)"))
            return
        self.found += [_Found(f, subject, file) for f in findings]


@dataclass(frozen=True)
class _Found:
    finding: Finding
    subject: FunctionModel | LayerModel | FileModel
    file: FileModel

    @property
    def is_own(self) -> bool:
        """The finding stands in the class it is reported for, not in a base class."""
        node, line = getattr(self.subject, "node", None), self.finding.line or 0
        if node is None or self.finding.path != self.file.path:
            return node is None
        return bool(node.lineno <= line <= (node.end_lineno or line))

    def is_hidden(self) -> bool:
        finding = self.finding
        where = self.file
        if isinstance(self.subject, FunctionModel) and finding.path != self.file.path:
            bases = [b.file for b in self.subject.bases if b.file.path == finding.path]
            where = bases[0] if bases else self.file
        first = finding.line or 0
        lines = [first, finding.end_line or first]
        hidden = where.comments.hides(finding.rule, finding.code, lines)
        for line in class_lines(self.subject):
            hidden = self.file.comments.hides(finding.rule, finding.code, (), line) or hidden
        return hidden


def class_lines(subject: object) -> range:
    """The lines of a class header, from `class` to its first statement: where a comment speaks for the whole class."""
    node = getattr(subject, "node", None)
    if node is None:
        return range(0)
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return range(first, max(first + 1, node.body[0].lineno if node.body else 0))


def _settled(found: Sequence[_Found]) -> list[Finding]:
    """Each finding once (a subclass repeats those of its base), without hidden ones, symptoms under their causes."""
    once: dict[tuple[object, ...], Finding] = {}
    for item in sorted(found, key=lambda item: not item.is_own):
        finding = item.finding
        key = (finding.rule, finding.path, finding.cell, finding.line, finding.column, finding.argument)
        if key not in once and not item.is_hidden():
            once[key] = finding
    by_path: dict[str | None, list[Finding]] = {}
    for finding in once.values():
        by_path.setdefault(finding.path, []).append(finding)
    return [finding for path in sorted(by_path, key=str) for finding in fold(merge(by_path[path]))]


def decoded(data: bytes) -> str:
    """Source bytes as text: a byte-order mark, a coding cookie, else UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SyntaxError("UTF-16, which Python does not read as source")
    if any(_COOKIE.match(line) for line in data.split(b"\n", 2)[:2]):
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding).removeprefix("\ufeff")
    return data.decode("utf-8-sig")


def _reason(error: BaseException, file: FileModel) -> str:
    if not isinstance(error, SyntaxError):
        return f"cannot be parsed: {_first_line(error)}"
    version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    line = error.lineno or 0
    text = file.lines[line - 1] if 0 < line <= len(file.lines) else ""
    hint = f" (read as {version}; newer syntax needs a newer Python)" if _NEWER_SYNTAX.search(text) else ""
    return f"syntax error at line {line}: {error.msg}{hint}"


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


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

"""A first look at the bytes of every file: what do they promise to the rules? Most files are done with after it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from gradsmith.catalog import Rule
from gradsmith.findings import Skipped, one_line
from gradsmith.linting import pool
from gradsmith.source import FileModel, notebook, scan
from gradsmith.source.encoding import decoded

# Up to this many bytes every file is parsed whole, so that a syntax error anywhere is reported; beyond it only the
# classes that matter are (the torch package: 0.13 s instead of 6 s).
PARSE_WHOLE_BELOW = 1_000_000
_BACKWARD = "backward"
_BEGINNING = 3  # letters
_RARE = 5
PAYS_FROM = 500  # files to read, from which a second process pays


class Promise(NamedTuple):
    """What the bytes of a file mention."""

    function: bool
    layer: bool
    words: frozenset[str]
    named: bool

    def __bool__(self) -> bool:
        return self.function or self.layer or bool(self.words) or self.named


class LookedAt(NamedTuple):
    """A file worth more than a look."""

    place: int
    file: FileModel
    promise: Promise
    size: int
    whole: bool = False


@dataclass
class FirstLook:
    """What came of it. Files that promise nothing are kept only while there is little to read."""

    kept: list[LookedAt] = field(default_factory=list)
    unpromising: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notebooks: dict[str, notebook.Notebook] = field(default_factory=dict)
    count: int = 0
    bytes: int = 0
    done: list[int] = field(default_factory=list)  # places in the list of all files

    def add(self, place: int, source: scan.Seen, wanted: Wanted) -> None:
        if isinstance(source, scan.Unread):
            source = scan.read(source)
        if isinstance(source, scan.Unreadable):
            self.skipped.append(Skipped(source.path, source.reason))
            return
        self.count += 1
        if isinstance(source, scan.Unpromising):
            self.bytes += source.size
            self.unpromising.append(source.path)
            return
        promise = wanted.in_bytes(source)
        if not promise:
            self.unpromising.append(source.path)
        if promise or self.bytes <= PARSE_WHOLE_BELOW:
            file = self._opened(source)
            if file is not None:
                self.kept.append(LookedAt(place, file, promise, len(source.data)))
        self.bytes += len(source.data)

    def _opened(self, source: scan.SourceFile) -> FileModel | None:
        try:
            if not source.path.endswith(notebook.ENDING):
                return FileModel(source.path, decoded(source.data))
            read = notebook.read(source.data)
        except (UnicodeDecodeError, LookupError, SyntaxError) as error:
            self.skipped.append(Skipped(source.path, f"cannot be decoded: {one_line(error)}"))
            return None
        except (ValueError, RecursionError) as error:
            self.skipped.append(Skipped(source.path, f"cannot be read as a notebook: {error}"))
            return None
        self.skipped += [Skipped(source.path, trouble) for trouble in read.trouble]
        self.notebooks[source.path] = read
        return FileModel(source.path, read.text)

    def settled(self) -> FirstLook:
        """With much to read, only what promises something is kept; otherwise every file is parsed whole."""
        if self.bytes > PARSE_WHOLE_BELOW:
            return replace(self, kept=[seen for seen in self.kept if seen.promise])
        return replace(self, kept=[seen._replace(whole=True) for seen in self.kept])


class Wanted(NamedTuple):
    """What the rules look for.

    Words that begin alike are looked for by one expression. It runs from one beginning to the next, as fast as a search for
    one plain word does.
    """

    alike: tuple[Alike, ...]
    beside: tuple[tuple[bytes, tuple[str, ...]], ...]  # words that are looked for only where another one is
    layers: bool
    asked: tuple[str, ...]
    asked_names_in: tuple[str, ...]

    @staticmethod
    def by(rules: Sequence[Rule]) -> Wanted:
        groups: dict[str, list[str]] = {}
        # A word of a rule without a condition is looked for everywhere, whatever other rules say of it.
        words = dict.fromkeys(word for rule in rules if not rule.beside for word in rule.triggers)
        beside = {word: rule.beside for rule in rules if rule.beside for word in rule.triggers if word not in words}
        beside |= {word: _BACKWARD for word in words if _BACKWARD in word}
        for word in (word for word in words if word not in beside):
            groups.setdefault(word[:_BEGINNING] if word[0].isalnum() else word[0], []).append(word)
        return Wanted(
            tuple(Alike.of(words) for words in groups.values()),
            tuple(
                (each.encode(), tuple(w for w in beside if beside[w] == each))
                for each in dict.fromkeys(beside.values())
            ),
            any(rule.lint_layer for rule in rules),
            tuple(dict.fromkeys(word for rule in rules for word in rule.asks)),
            tuple(dict.fromkeys(word for rule in rules for word in rule.asks_names_in)),
        )

    def in_bytes(self, source: scan.SourceFile) -> Promise:
        mentioned = scan.mentioned(source.data)
        words = [word for group in self.alike for word in group.in_bytes(source.data)]
        for companion, wanted in self.beside:
            if companion in source.data:
                words += [word for word in wanted if word.encode() in source.data]
        return Promise(mentioned.function, self.layers and mentioned.layer, frozenset(words), source.named)


class Alike(NamedTuple):
    """Words that begin alike."""

    words: tuple[str, ...]
    beginning: bytes
    expression: re.Pattern[bytes]

    @staticmethod
    def of(words: Sequence[str]) -> Alike:
        expression = re.compile(b"|".join(re.escape(word.encode()) for word in words))
        beginning = os.path.commonprefix(words)  # noqa: RUF071 (letters are what is meant)
        return Alike(tuple(words), beginning.encode(), expression)

    def in_bytes(self, data: bytes) -> Sequence[str]:
        """Those that occur."""
        # A long beginning is rare, and found in two thirds of the time of the expression.
        if len(self.beginning) >= _RARE and self.beginning not in data:
            return ()
        if self.expression.search(data) is None:
            return ()
        return [word for word in self.words if word.encode() in data]


def look_at(sources: Iterable[scan.Seen], rules: Sequence[Rule]) -> FirstLook:
    """Read the files and see what they promise, in several processes where there is much to read."""
    wanted, listed = Wanted.by(rules), list(sources)
    count = pool.processors() if sum(isinstance(s, scan.Unread) for s in listed) >= PAYS_FROM else 1
    looks = pool.shared_out(partial(_look, listed, wanted), range(len(listed)), count)
    whole = FirstLook()
    for look in looks:
        whole.kept += look.kept
        whole.unpromising += look.unpromising
        whole.skipped += look.skipped
        whole.notebooks.update(look.notebooks)
        whole.count += look.count
        whole.bytes += look.bytes
    whole.kept.sort(key=lambda seen: seen.place)
    whole.skipped.sort(key=lambda skipped: skipped.path)
    return whole.settled()


def _look(listed: Sequence[scan.Seen], wanted: Wanted, places: Iterable[int]) -> FirstLook:
    look = FirstLook()
    for place in places:
        kept = len(look.kept)
        look.add(place, listed[place], wanted)
        for seen in look.kept[kept:]:
            _find_out(seen, wanted)
        look.done.append(place)
    return look


def _find_out(seen: LookedAt, wanted: Wanted) -> None:
    """What will be asked of every file; here, where several processes are at work."""
    seen.file.note(wanted.asked)
    if seen.file.mentions(*wanted.asked_names_in):
        assert seen.file.names is not None
    if seen.promise.function:
        assert seen.file.direct_functions is not None

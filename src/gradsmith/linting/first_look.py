"""A first look at the bytes of every file: what do they promise to the rules? Most files are done with after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from gradsmith.catalog import Rule
from gradsmith.findings import Skipped, one_line
from gradsmith.linting import pool
from gradsmith.source import FileModel, notebook, scan
from gradsmith.source.encoding import decoded
from gradsmith.source.file import CALLED

# Up to this many bytes every file is parsed whole, so that a syntax error anywhere is reported; beyond it only the
# classes that matter are (the torch package: 0.13 s instead of 6 s).
PARSE_WHOLE_BELOW = 1_000_000
_RARE = 5  # letters: a shorter beginning stands in every other file
PAYS_FROM = 100  # files to read, from which a second process pays


class Promise(NamedTuple):
    """What the bytes of a file mention."""

    function: bool
    layer: bool
    words: frozenset[str]
    named: bool

    def __bool__(self) -> bool:
        return self.function or self.layer or bool(self.words) or self.named


class Ahead(NamedTuple):
    """A file that was read before it was known what to look for."""

    place: int
    source: scan.Seen
    known: scan.Known


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

    def add(self, place: int, source: scan.Seen, wanted: Wanted, known: scan.Known | None = None) -> None:
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
        promise = wanted.in_bytes(source, known)
        if not promise:
            self.unpromising.append(source.path)
        if promise or self.bytes <= PARSE_WHOLE_BELOW:
            file = self._opened(source)
            if file is not None:
                if not source.path.endswith(notebook.ENDING):  # what a notebook holds beside its text says nothing
                    file.note(wanted.noted_in(source, promise))
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


class Group(NamedTuple):
    """Words that stand only where their companion does. One search for that rules out all of them in most files."""

    companion: bytes
    words: tuple[tuple[str, bytes], ...]
    behind: int  # how many letters of the companion stand before its stem

    def in_bytes(self, data: bytes, stem: int) -> Iterator[str]:
        """Those that occur, where the stem first stands at `stem`."""
        at = data.find(self.companion, max(0, stem - self.behind))
        if at < 0:
            return
        if not all(encoded.startswith(self.companion) for _, encoded in self.words):
            yield from (word for word, encoded in self.words if encoded in data)
            return
        any_of_them = tuple([encoded for _, encoded in self.words])
        while at >= 0:
            if data.startswith(any_of_them, at):
                yield from (word for word, encoded in self.words if data.startswith(encoded, at))
            at = data.find(self.companion, at + 1) if len(self.words) > 1 else -1


class Wanted(NamedTuple):
    """What the rules look for, by the stem that must be in a file for that (see `scan.STEMS`; the first: none).

    Plain searches: an expression takes longer than a search for each of its words.
    """

    groups: tuple[tuple[Group, ...], ...]
    in_paths: tuple[tuple[str, Group], ...]  # looked for where this stands in the path
    late: tuple[Group, ...]  # of rules that judge the findings of others: looked for where those find something to do
    everywhere: frozenset[str]  # words that are looked for whatever else a file holds
    layers: bool
    asked: tuple[str, ...]
    asked_names_in: tuple[str, ...]

    @staticmethod
    def by(rules: Sequence[Rule]) -> Wanted:
        # A word of a rule without a condition is looked for everywhere, whatever other rules say of it.
        freely = [rule for rule in rules if not rule.in_paths]
        words = dict.fromkeys(word for rule in freely for word in rule.triggers if word not in rule.beside)
        beside = {word: rule.beside[word] for rule in freely for word in rule.triggers if word not in words}
        beside |= {word: _companion(word, tuple(words)) for word in words}
        by_stem: dict[bytes, list[Group]] = {stem: [] for stem in (b"", *scan.STEMS)}
        for companion in (each.encode() for each in dict.fromkeys(beside.values())):
            wanted = tuple((word, word.encode()) for word in beside if beside[word].encode() == companion)
            stem = max((stem for stem in by_stem if stem in companion), key=len)
            by_stem[stem].append(Group(companion, wanted, companion.index(stem)))
        judging = {word for rule in freely if rule.after_others for word in rule.triggers}
        judging -= {word for rule in freely if not rule.after_others for word in rule.triggers}
        late = [group for group in by_stem[b""] if judging.issuperset(word for word, _ in group.words)]
        by_stem[b""] = [group for group in by_stem[b""] if group not in late]
        parts = {(rule.in_paths, word): None for rule in rules if rule.in_paths for word in rule.triggers}
        return Wanted(
            tuple(map(tuple, by_stem.values())),
            tuple((part, Group(w.encode(), ((w, w.encode()),), 0)) for part, w in parts if w not in beside),
            tuple(late),
            frozenset(words).difference(word for group in late for word, _ in group.words),
            any(rule.lint_layer for rule in rules),
            tuple(dict.fromkeys(word for rule in rules for word in rule.asks)),
            tuple(dict.fromkeys(word for rule in rules for word in rule.asks_names_in)),
        )

    def in_bytes(self, source: scan.SourceFile, known: scan.Known | None = None) -> Promise:
        data = source.data
        known = known or scan.known(data)
        words: list[str] = []
        for first, groups in zip((0, *known.stems), self.groups):
            for group in groups if first >= 0 else ():
                words += group.in_bytes(data, first)
        for part, group in self.in_paths:
            if part in source.path:
                words += group.in_bytes(data, 0)
        for group in self.late if words or known.function or known.layer or source.named else ():
            words += group.in_bytes(data, 0)
        return Promise(known.function, self.layers and known.layer, frozenset(words), source.named)

    def noted_in(self, source: scan.SourceFile, promise: Promise) -> Iterator[tuple[str, bool]]:
        """Words that will be asked for, and whether they occur. Letters beyond ASCII make a text slower to search than its bytes."""
        in_path = (word for part, group in self.in_paths if part in source.path for word, _ in group.words)
        known = self.everywhere.union(in_path)
        yield from ((word, word in promise.words) for word in known)
        yield from ((word, word.encode() in source.data) for word in (*self.asked, *CALLED) if word not in known)


def _companion(word: str, words: Sequence[str]) -> str:
    """What stands wherever the word does: a beginning that it shares with others, or the word itself."""
    shared = [os.path.commonprefix((word, other)) for other in words if other != word]  # noqa: RUF071 (letters are meant)
    longest = max(shared, key=len, default="")
    return longest if len(longest) >= _RARE else word


def look_at(sources: Iterable[scan.Seen], rules: Sequence[Rule]) -> FirstLook:
    """Read the files and see what they promise, in several processes where there is much to read."""
    wanted, listed = Wanted.by(rules), list(sources)
    count = pool.processors() if sum(isinstance(s, scan.Unread) for s in listed) >= PAYS_FROM else 1
    return whole(pool.shared_out(partial(look, listed, wanted), range(len(listed)), count))


def whole(looks: Iterable[FirstLook]) -> FirstLook:
    """What several processes saw, as if it were one."""
    all_of_it = FirstLook()
    for look in looks:
        all_of_it.kept += look.kept
        all_of_it.unpromising += look.unpromising
        all_of_it.skipped += look.skipped
        all_of_it.notebooks.update(look.notebooks)
        all_of_it.count += look.count
        all_of_it.bytes += look.bytes
    all_of_it.kept.sort(key=lambda seen: seen.place)
    all_of_it.skipped.sort(key=lambda skipped: skipped.path)
    return all_of_it.settled()


def look(listed: Sequence[scan.Seen], wanted: Wanted, places: Iterable[int], ahead: Sequence[Ahead] = ()) -> FirstLook:
    """At the files in these places of the list; those in `ahead` were read before."""
    seen_of, read = FirstLook(), {each.place: each for each in ahead}
    for place in places:
        kept = len(seen_of.kept)
        if place in read:
            seen_of.add(place, read[place].source, wanted, read[place].known)
        else:
            seen_of.add(place, listed[place], wanted)
        for seen in seen_of.kept[kept:]:
            _find_out(seen, wanted)
        seen_of.done.append(place)
    return seen_of


def _find_out(seen: LookedAt, wanted: Wanted) -> None:
    """What will be asked of every file; here, where several processes are at work."""
    if seen.file.mentions(*wanted.asked_names_in):
        assert seen.file.names is not None
    assert seen.file.holders is not None
    if seen.promise.function:
        assert seen.file.direct_functions is not None

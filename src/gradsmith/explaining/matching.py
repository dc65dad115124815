"""Which entry a text means: PyTorch's own words where they are there, else the entry that shares most of what is said.

A word counts by how few entries have it. A text that is cut off or reworded shares most of its weight with one entry, in both
directions, and clearly more than with any other; a text that is none of ours does not, and is unknown.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gradsmith.explaining.entries import Entry, entries
from gradsmith.explaining.pasted import Pasted

LEAST = 0.5  # of the weight is shared (the cosine of the two): more is alike than not
LEAST_WORDS = 3  # fewer words say nothing, however rare they are
CLOSE = 1.1  # an entry that is behind the best by less is named, too

_GAP = "..."
_SMALL = (
    "a an the of to is are was were be been being has have had do does did that this it its in on by and or with for as at "
    "i my you your"
)
_STOP = frozenset(_SMALL.split())
_ENDINGS = ("ing", "ies", "ied", "ed", "es", "ly", "s", "e")


@dataclass(frozen=True)
class Match:
    """An entry, and how sure it is: 1 where PyTorch's own words were found, else the share of what is said.

    `others` are the names of entries that fit almost as well.
    """

    entry: Entry
    score: float = 1.0
    others: tuple[str, ...] = ()


def match(pasted: Pasted) -> Match | None:
    """The entry that a text means; None: unknown."""
    for message in pasted.messages:
        said = _plain(message)
        possible = [entry for entry in entries().values() if _possible(entry, said, pasted)]
        found = _longest(said, possible, _whole) or _longest(said, possible, _cut) or _by_words(message, possible)
        if found:
            return found
    return None


def _possible(entry: Entry, said: str, pasted: Pasted) -> bool:
    """Whether a text can mean an entry at all: its words are in the traceback, and it is about the same function."""
    if not all(words in pasted.text for words in entry.seen):
        return False
    called = {name for wording in entry.wordings if (name := _called(_plain(wording)))}
    return not called or (_called(said) in (called | {""}) and (not pasted.frames or _by_torch(pasted.frames[-1].path)))


def _called(text: str) -> str:
    """The function with which Python begins an error about arguments, without its class; "" where a text begins otherwise.

    >>> _called("outline.__init__() missing 1 required positional argument: 'page'")
    '__init__'
    """
    found = re.match(r"[\w.<>]*?(\w*)\(\) (?:takes|missing|got)\b", text)
    return found[1] if found else ""


def _by_torch(path: str) -> bool:
    """Whether a call stands in a file of torch: Python raises an error about arguments where the call is."""
    return "torch" in re.split(r"[\\/]", path)[:-1]


def _longest(said: str, possible: Sequence[Entry], length: Callable[[str, str], int]) -> Match | None:
    """The entry of which most letters of a wording stand in what is said; None where two have the same."""
    lengths = {entry.name: max(length(wording, said) for wording in entry.wordings) for entry in possible}
    most = max(lengths.values(), default=0)
    best = [name for name in lengths if lengths[name] == most]
    return Match(entries()[best[0]]) if most and len(best) == 1 else None


def _whole(wording: str, said: str) -> int:
    return len(wording) if re.search(_pattern(wording), said, re.S) else 0


def _cut(wording: str, said: str) -> int:
    """How many letters of a wording stand at the end of what is said, which was cut off, at its beginning, or are all of it."""
    if len({*words(wording)} & {*words(said)}) < LEAST_WORDS - 1:  # one more may have been cut
        return 0
    parts = _plain(wording).split()
    said = said.strip(" .…")
    if said in _plain(wording) and _tells(said.split()):
        return len(said)
    for count in range(len(parts) - 1, LEAST_WORDS - 1, -1):
        first, last = parts[:count], parts[-count:]
        head = re.search(_pattern(" ".join(first)) + r"\s?(?P<rest>\S*)$", said, re.S)
        if (
            head
            and parts[count].startswith(("" if parts[count] == _GAP else head["rest"], _GAP))
            and _tells(parts[: count + bool(head["rest"])])
        ):
            return len(" ".join(first))
        tail = re.match(r"(?P<rest>\S*?)\s?" + _pattern(" ".join(last)), said, re.S)
        if tail and parts[-count - 1].endswith(tail["rest"]) and _tells(parts[-count - bool(tail["rest"]) :]):
            return len(" ".join(last))
    return 0


def _tells(parts: Sequence[str]) -> bool:
    """Whether a part of a wording is more than small words and gaps."""
    return len(words(" ".join(parts))) >= LEAST_WORDS


def _by_words(message: str, possible: Sequence[Entry]) -> Match | None:
    if len(words(message)) < LEAST_WORDS:
        return None
    # What needs a context says nothing by its words.
    likeness = {entry.name: _likeness(message, entry) for entry in possible if not entry.seen}
    best = max(likeness, key=lambda name: likeness[name])
    if likeness[best] < LEAST:
        return None
    others = [name for name, value in likeness.items() if name != best and value * CLOSE > likeness[best]]
    return Match(entries()[best], likeness[best], tuple(others))


def _likeness(message: str, entry: Entry) -> float:
    return max(_cosine(message, wording) for wording in entry.wordings)


def _cosine(message: str, wording: str) -> float:
    said, known = words(message), words(wording)
    shared = _weight(_shared(said, known))
    return shared / math.sqrt(_weight(said) * _weight(known)) if shared else 0.0


def _shared(said: tuple[str, ...], known: tuple[str, ...]) -> set[str]:
    """Words of both; the first and the last word of what was said may have been cut."""
    both = set(said) & set(known)
    both |= {word for word in known if len(said[-1]) > 2 and word.startswith(said[-1])}
    return both | {word for word in known if len(said[0]) > 2 and word.endswith(said[0])}


def _weight(some: Iterable[str]) -> float:
    return sum(_rarity(word) for word in set(some))


def _rarity(word: str) -> float:
    """How much a word tells: little where many entries have it, most where none has."""
    counts, total = _counts()
    told = math.log(1 + total / (counts[word] or 1))
    return 2 * told if "_" in word else told  # a name of PyTorch's is never there by chance


@functools.cache
def _counts() -> tuple[Counter[str], int]:
    """In how many entries each word stands, and how many entries there are."""
    known = entries().values()
    return Counter(word for e in known for word in {w for wording in e.wordings for w in words(wording)}), len(known)


@functools.lru_cache(maxsize=1024)
def words(text: str) -> tuple[str, ...]:
    """The words of a text in their order, without endings; numbers, shapes and small words are left out.

    >>> words("Variables can't be modified in-place: [torch.FloatTensor [3]]")
    ('variabl', 'can', 'not', 'modif', 'inplac')
    """
    plain = re.sub(r"\[[^\[\]]*\]", " ", re.sub(r"\[[^\[\]]*\]", " ", _plain(text)))  # and brackets within brackets
    found = re.findall(r"[a-z_][a-z0-9_]*", plain)
    return tuple(_stem(word) for word in found if word not in _STOP and len(word) > 1)


def _stem(word: str) -> str:
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) > 3), "")
    return word[: len(word) - len(ending)]


def _plain(text: str) -> str:
    """Small letters, one blank between words, and no short forms."""
    text = text.lower().replace("’", "'")
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", "", re.sub(r"n't\b", " not", text))  # in-place is inplace
    return " ".join(text.split())


@functools.cache
def _pattern(wording: str) -> str:
    return r"\s?.*?\s?".join(re.escape(_plain(part)) for part in wording.split(_GAP))

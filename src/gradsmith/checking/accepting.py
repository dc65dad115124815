"""Assumptions that the user accepts: by decorator, by comment, or in pyproject.toml."""

from __future__ import annotations

from collections.abc import Sequence

from gradsmith.checking.options import Options
from gradsmith.findings import Subject
from gradsmith.inputs.declared import assumed
from gradsmith.lab.subject.declarations import parts
from gradsmith.lab.subject.target import Target
from gradsmith.source.loaded import assumed_at

_QUOTES = str.maketrans("", "", "'\"`‘’“”")


def accepted_for(target: Target, options: Options) -> tuple[str, ...]:
    """The sentences that the subject, the classes it derives from, and the project say always hold."""
    written = [sentence for part in _parts(target) for sentence in (*assumed(part), *assumed_at(part))]
    name = target.name
    names = dict.fromkeys((name, name.rpartition(".")[2], name.rpartition("::")[2]))
    project = [sentence for n in names for sentence in options.assumes.get(n, ())]
    return tuple(dict.fromkeys((*written, *project)))


def is_accepted(sentence: str, accepted: Sequence[str]) -> bool:
    """Whether this assumption is accepted. Of one that needs several things broken, any one of them is enough.

    >>> is_accepted("'matrix' is symmetric", ["Matrix is  symmetric"]), is_accepted("'x' <= 15", ["x <= 16"])
    (True, False)
    """
    known = {_compared(one) for one in accepted}
    return any(_compared(part) in known for part in (sentence, *sentence.split("; ")))


def unmatched(subject: Subject, target: Target, options: Options) -> list[str]:
    """A note for each accepted sentence that is no assumption of the subject; none where not everything was tried."""
    if not subject.explored or subject.explored.get("budget spent"):
        return []
    accepted = accepted_for(target, options)
    idle = [one for one in accepted if not any(is_accepted(sentence, [one]) for sentence in subject.assumptions)]
    return [f"assumes[{one}] matches no assumption of {target.name}" for one in idle]


def plain(sentence: str) -> str:
    """The sentence as a user would type it: without quotes.

    >>> plain("'matrix' is symmetric")
    'matrix is symmetric'
    """
    return " ".join(sentence.translate(_QUOTES).split())


def comment(sentence: str) -> str:
    """The comment that accepts it."""
    return f"# gradsmith: assumes[{plain(sentence)}]"


def _compared(sentence: str) -> str:
    """Case, quotes and whitespace do not count."""
    return "".join(sentence.translate(_QUOTES).casefold().split())


def _parts(target: Target) -> list[object]:
    """What the subject is made of; of a module, its class and those that it derives from."""
    if target.module is None:
        return list(parts(target))
    return [cls for cls in type(target.module).__mro__ if not cls.__module__.startswith(("torch.", "builtins"))]

"""Answers that a Lab keeps: a question with the same arguments is worked out once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from gradsmith.lab.lab import Lab

P = ParamSpec("P")
T = TypeVar("T")


def once(question: Callable[Concatenate[Lab, P], T]) -> Callable[Concatenate[Lab, P], T]:
    """A question about a Lab that is answered once for the same (hashable) arguments; what raises is asked again."""

    @functools.wraps(question)
    def answer(lab: Lab, /, *args: P.args, **kwargs: P.kwargs) -> T:
        known = lab.answers.setdefault(answer, {})
        key = (args, tuple(sorted(kwargs.items())))
        if key not in known:
            known[key] = question(lab, *args, **kwargs)
        found: T = known[key]
        return found

    return answer


def holds_a_run(question: Callable[Concatenate[Lab, P], T]) -> Callable[Concatenate[Lab, P], T]:
    """Above `@once`: the answer holds what one run left behind, and is forgotten with it where inputs are large."""
    question.holds_a_run = True  # type: ignore[attr-defined]
    return question


def known(lab: Lab, question: Callable[..., T]) -> list[T]:
    """The answers that were worked out so far."""
    answers: dict[Any, T] = lab.answers.get(question, {})
    return list(answers.values())

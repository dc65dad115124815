"""A step away from the example: small, typed, and replayable.

An explored example is the user's own inputs and a list of moves. Taking a move back is leaving it out of the list, so
shrinking, storing and telling all work on moves, never on values.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gradsmith.lab.subject.arguments import Arguments

Kind = Literal[
    "values", "branch", "clamp", "named option", "invented option", "gradient control", "size", "ids", "structure",
    "requires grad", "state",
]  # fmt: skip


@dataclass(frozen=True)
class Move(ABC):
    """`argument` names what is changed. All fields are JSON-able: a move can be stored and replayed."""

    argument: str
    kind: ClassVar[Kind]
    order: ClassVar[int] = 1  # options before sizes, sizes before values: each sees what the earlier ones made
    risky: ClassVar[bool] = False  # may crash the process
    magnitude: ClassVar[bool] = False  # is about how large the numbers are
    addresses: ClassVar[bool] = False  # may make code that reads memory by itself read elsewhere

    @abstractmethod
    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        """The arguments after this step; None where it changes nothing. The user's own tensors stay as they are."""

    @abstractmethod
    def words(self) -> str:
        """How a message says it: "with `transpose=True`"."""

    def nearer(self) -> Move | None:
        """The same step, but shorter, for a forward that cannot follow (NaN, a singular matrix); None where it has no length."""
        return None

    @property
    def assumes(self) -> str:
        """What an example must have for this step never to be taken: "'p' has rows that sum to 1"; empty where nothing."""
        return ""


def shorter(reach: float) -> float | None:
    """The length to try after this one; None where it would hardly leave the example."""
    return reach / 5 if reach > 0.1 else None


def applied(moves: Sequence[Move], arguments: Arguments, seed: int) -> Arguments | None:
    """The arguments after all of these steps; None where one of them cannot be made."""
    for number, move in enumerate(sorted(moves, key=lambda m: m.order)):
        after = move.applied(arguments, seed + number)
        if after is None:
            return None
        arguments = after
    return arguments


def told(moves: Sequence[Move]) -> str:
    """The steps in one sentence."""
    return " and ".join(dict.fromkeys(m.words() for m in sorted(moves, key=lambda m: m.order)))


def as_json(move: Move) -> dict[str, Any]:
    return {"move": type(move).__name__, **dataclasses.asdict(move)}

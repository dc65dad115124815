"""A step away from the example: small, typed, replayable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

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

    @abstractmethod
    def applied(self, arguments: Arguments, seed: int) -> Arguments | None:
        """The arguments after this step; None where it changes nothing. The user's own tensors stay as they are."""

    @abstractmethod
    def words(self) -> str:
        """How a message says it: "with `transpose=True`"."""

"""A forward that cannot be derived: the line, the reason, and what to write instead."""

from __future__ import annotations

from gradsmith.findings import GradsmithError


class Refused(GradsmithError):
    """Raised wherever a derivative would have to be guessed. Nothing is ever taken for a constant instead."""

    def __init__(self, reason: str, remedy: str = "", line: int | None = None) -> None:
        self.reason, self.remedy, self.line = reason, remedy, line
        where = f"line {line}: " if line else ""
        super().__init__(f"{where}{reason}" + (f" {remedy}" if remedy else ""))

    def at(self, line: int | None) -> Refused:
        """The same refusal, with the line where it happened."""
        return self if self.line or not line else type(self)(self.reason, self.remedy, line)

    def of(self, name: str) -> Refused:
        """The same refusal, to somebody who has to be told of what nothing was derived."""
        told = type(self)(self.reason, self.remedy, self.line)
        told.args = (f"no backward was derived for {name}: {self}",)
        return told


class LoopRefused(Refused):
    """A loop cannot stay a loop; turn by turn it may still be read, if it is short."""


class Promoted(Exception):
    """A variable is a number before a loop and a tensor after its first turn: read again, with a tensor from the start."""

    def __init__(self, where: tuple[int, str]) -> None:
        super().__init__(where)
        self.where = where

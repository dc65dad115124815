"""What is asked of the supply of inputs, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradsmith.findings import InputsFrom
from gradsmith.lab.subject.binding import Example


@dataclass(frozen=True)
class Supply:
    """Examples to run a subject on, and where they come from. Those of a module class begin with an instance of it."""

    examples: tuple[Example, ...] = ()
    source: InputsFrom = "none"
    code: str = ""  # a guess as code that can be pasted
    instance: str = ""  # of it, the call that builds the instance of a module class
    notes: tuple[str, ...] = ()
    missing: str = ""  # why there are no examples, and what to write
    assumes: tuple[str, ...] = ()  # what holds for these examples and need not hold elsewhere
    ran: Mapping[str, Any] = field(default_factory=dict)  # of recorded calls: how many, from which lines


@dataclass(frozen=True)
class Wish:
    """What to ask for. `module` is where the declarations stand, `recorded` a file of `gradsmith record --save`."""

    seed: int = 0
    module: Any = None
    recorded: str | None = None
    device: Any = None
    as_recorded: bool = False  # recorded inputs in their full size, as they were: for a profile
    guessing: Callable[[], None] | None = None  # called before anything is guessed
    own_process: bool = False  # nobody else computes in this process: it may join a group

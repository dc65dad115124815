"""How to check: every option once. Python, the command line and the worker's JSON are made from these fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from types import ModuleType
from typing import Any

from gradsmith.checking.named import found, named
from gradsmith.findings import GradsmithError
from gradsmith.nearest import nearest
from gradsmith.rule_shape import LEVELS

GRADIENTS = ("exact", "surrogate", "approximate")


def _asked(default: Any, help: str, *, choices: Sequence[str] = (), metavar: str = "") -> Any:
    """A field that is an option of `gradsmith check`, too."""
    return field(default=default, metadata={"help": help, "choices": tuple(choices), "metavar": metavar})


@dataclass(frozen=True)
class Options:
    """Everything `gs.check` takes besides the subject and its inputs."""

    gradient: str | None = _asked(None, "What the gradient is meant to be. [exact]", choices=GRADIENTS)
    level: str = _asked("standard", "How thoroughly. [standard]", choices=LEVELS)
    seed: int = _asked(0, "Seed of inputs and directions. [0]")
    steps: bool = _asked(False, "Explain the check step by step, with what to try at each step.")
    coverage: bool = _asked(False, "List every line and every side of a condition that was not reached.")
    second_order: bool = _asked(False, "Demand that the second derivative is right, too.")
    recorded: str | None = _asked(None, "Inputs from `gradsmith record --save FILE`.", metavar="FILE")
    kind: str | None = None  # of a surrogate, where another one inside it says so
    like: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    project: Callable[..., Any] | None = None
    rtol: float | None = None
    atol: float | None = None
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    preview: bool = False
    assumes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # accepted by the project, for each subject
    surrogates: Sequence[str] = ()  # patterns of names that the project declares to be surrogates
    debug: bool = False
    lint: bool = True
    isolated: bool = False  # in a process of its own, where a crash costs one subject
    empty: bool = True  # try tensors without elements there; off once they have crashed the subject

    def __post_init__(self) -> None:
        for name in ("gradient", "level"):
            value, choices = getattr(self, name), _field(name).metadata["choices"]
            if value is not None and value not in choices:
                raise GradsmithError(f"{name}={value!r} is unknown; {nearest(str(value), choices)}")

    @staticmethod
    def of(values: Mapping[str, Any]) -> Options:
        """Options by name; one that does not exist is answered with the nearest that does."""
        known = [f.name for f in fields(Options)]
        for name in values:
            if name not in known:
                raise GradsmithError(f"no option is called {name!r}; {nearest(name, known)}")
        return Options(**values)

    def as_json(self) -> dict[str, Any]:
        """As they travel to another process: functions by their names, which refuses those that have none."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: named(value, name) if callable(value) else value for name, value in values.items()}

    @staticmethod
    def from_json(told: Mapping[str, Any], module: ModuleType) -> Options:
        """The options that travelled, with the functions among them found by their names; `module` is the subject's."""
        named_here = [f.name for f in fields(Options) if "Callable" in str(f.type) and told.get(f.name) is not None]
        functions = {name: found(told[name], module) for name in named_here}
        return Options(**{**told, **functions, "isolated": True})


def on_command_line() -> list[Field[Any]]:
    """The fields that are options of the command, in the order in which its help shows them."""
    return [f for f in fields(Options) if "help" in f.metadata]


def _field(name: str) -> Field[Any]:
    return next(f for f in fields(Options) if f.name == name)

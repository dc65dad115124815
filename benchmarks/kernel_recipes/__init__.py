"""Inputs for Functions of released packages, and what they should compute.

A recipe is a function in plain torch, which is the reference in float64, under a line that says which Function it stands for and
on which inputs. Its name is the case's name:

    @case("rms_norm.LigerRMSNormFunction", normal(3, 5, 37), normal(37), 1e-6)
    def rms_norm(x, weight, eps): ...
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Through = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Made:
    """Arguments that are made anew each time; several at once where they depend on each other."""

    make: Callable[[], tuple[Any, ...]]


def normal(*shape: int, through: Through | None = None, grad: bool = True) -> Made:
    """N(0, 1) numbers, sent through a function, as float32."""
    return Made(lambda: (_float32(torch.randn(shape, dtype=torch.float64), through, grad),))


def uniform(*shape: int, through: Through | None = None, grad: bool = True) -> Made:
    """Numbers between 0 and 1, sent through a function, as float32."""
    return Made(lambda: (_float32(torch.rand(shape, dtype=torch.float64), through, grad),))


def ids(*rows: Any) -> Made:
    """Whole numbers, as they are written."""
    return Made(lambda: (torch.tensor(rows),))


def number(value: float) -> Made:
    """One number that has a gradient."""
    return Made(lambda: (torch.tensor(value, requires_grad=True),))


def _float32(numbers: Tensor, through: Through | None, grad: bool) -> Tensor:
    return (through(numbers) if through is not None else numbers).float().requires_grad_(grad)


@dataclass(frozen=True)
class Case:
    """A Function of a package, its inputs, and what it should compute (None where nobody wrote it down)."""

    name: str
    module: str
    function: str
    inputs: tuple[Any, ...]
    reference: Callable[..., Any] | None
    defect: str = ""  # what is wrong with it beside these inputs; docs/found.md has the script that shows it
    bare: tuple[str, ...] = ()  # packages around it whose `__init__` does not run

    def home(self) -> Any:
        """The module that has the Function."""
        for name in self.bare:
            if name not in sys.modules:
                spec = importlib.machinery.PathFinder.find_spec(name, _path_of(name.rpartition(".")[0]))
                package = types.ModuleType(name)
                package.__path__ = list(spec.submodule_search_locations or ()) if spec is not None else []
                sys.modules[name] = package
        return importlib.import_module(self.module)

    def arguments(self) -> tuple[Any, ...]:
        made = (given.make() if isinstance(given, Made) else (given,) for given in self.inputs)
        return tuple(argument for some in made for argument in some)


def _path_of(package: str) -> Any:
    return importlib.import_module(package).__path__ if package else None


@dataclass
class Recipes:
    """The cases of one package; calling it gives the decorator."""

    package: str
    home: str  # the package's modules are found below it
    bare: tuple[str, ...] = ()
    cases: list[Case] = field(default_factory=list)

    def __call__(self, where: str, *inputs: Any, name: str = "", defect: str = "") -> Callable[[Any], Any]:
        def add(reference: Any) -> Any:
            self._add(name or reference.__name__, where, inputs, reference, defect)
            return reference

        return add

    def alone(self, name: str, where: str, *inputs: Any) -> None:
        """A case without a reference: its gradient is held against its own forward only."""
        self._add(name, where, inputs, None)

    def _add(self, name: str, where: str, inputs: tuple[Any, ...], reference: Any, defect: str = "") -> None:
        module, _, function = where.rpartition(".")
        module = ".".join(filter(None, (self.home, module)))
        self.cases.append(Case(f"{self.package}.{name}", module, function, inputs, reference, defect, self.bare))

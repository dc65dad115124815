"""Mutants at inputs that hide what is wrong with them, found with torch's gradcheck and without gradsmith.

Used by impoverished.py.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from mutants import Mutant, examples, load
from poverties import Args, Poverty, applied, copied, of_structure, of_values
from torch import Tensor


@dataclass(frozen=True)
class Poor:
    """A mutant, and inputs at which gradcheck does not see that it is wrong."""

    mutant: Mutant
    steps: tuple[Poverty, ...]
    args: Args

    @property
    def poverty(self) -> str:
        return " + ".join(step.name for step in self.steps) or "another declared example"

    @property
    def name(self) -> str:
        return f"{self.mutant.name} [{' + '.join(map(str, self.steps)) or 'another declared example'}]"


@dataclass
class Search:
    """What the search came across."""

    mutants: int = 0
    invisible: int = 0  # gradcheck passes at the declared inputs already: in-place writes, state, precision
    never: int = 0  # no poverty hides it
    none_left_out: int = 0

    def subjects(self, mutants: list[Mutant], per_mutant: int) -> Iterator[Poor]:
        for mutant in mutants:
            self.mutants += 1
            try:
                found = list(self._hidden(mutant, per_mutant))
            except (KeyError, SyntaxError):
                continue  # inputs that are declared only where a package is installed
            yield from found

    def _hidden(self, mutant: Mutant, per_mutant: int) -> Iterator[Poor]:
        declared = []
        for build in examples(load(mutant.original), mutant.cls):
            torch.manual_seed(0)
            declared.append(tuple(build()))
        usable = [args for args in declared if passes(mutant.original, mutant.cls, args)]
        seen = [not passes(mutant.source, mutant.cls, args) for args in usable]
        if not any(seen):
            self.invisible += 1
            return
        # Where to begin is turned by the name, so that not all subjects get the first poverty of the list.
        turn = int.from_bytes(hashlib.sha256(mutant.name.encode()).digest()[:4], "big")
        found: list[Poor] = []
        for depth in (0, 1, 2):
            ways = [way for args, fails in zip(usable, seen) for way in _ways(mutant, args, depth, fails)]
            ways = ways[turn % len(ways) :] + ways[: turn % len(ways)] if ways else []
            for steps, args in ways:
                if len(found) == per_mutant:
                    break
                poor = self._made(mutant, steps, args)
                if poor is not None and poor.poverty not in [other.poverty for other in found]:
                    found.append(poor)
            if found:
                break
        self.never += not found
        yield from found

    def _made(self, mutant: Mutant, steps: tuple[Poverty, ...], args: Args) -> Poor | None:
        torch.manual_seed(1)
        try:
            poorer = applied(steps, copied(args))
        except (RuntimeError, ValueError, IndexError):
            return None  # a symmetric batch of vectors, and the like
        if poorer is None or not agree(mutant, poorer):
            return None
        if not passes(mutant.original, mutant.cls, poorer) or not passes(mutant.source, mutant.cls, poorer):
            return None
        if mutant.operator == "None gradient" and any(step.name == "one gradient asked for" for step in steps):
            self.none_left_out += 1
            return None
        return Poor(mutant, steps, poorer)


def _ways(mutant: Mutant, args: Args, depth: int, fails: bool) -> list[tuple[tuple[Poverty, ...], Args]]:
    """Chains of so many poverties that start at one declared example. None at all: an example that shows nothing."""
    if depth == 0:
        return [] if fails else [((), args)]
    if not fails:
        return []
    cls = getattr(load(mutant.original), mutant.cls)
    structure = list(of_structure(args, cls.forward, "setup_context" not in vars(cls)))
    if depth == 1:
        return [((step,), args) for step in [*of_values(args), *structure]]
    return [(pair, args) for pair in itertools.product(structure, of_values(args, one_by_one=False))]


def passes(source: str, cls: str, args: Args) -> bool:
    """Whether torch's gradcheck is content; every time with a module of its own, since some mutants keep state."""
    try:
        function = getattr(load(source), cls)
        inputs = copied(args)
        return bool(torch.autograd.gradcheck(lambda *a: _differentiable(function.apply(*a)), inputs))
    except Exception:
        return False


def agree(mutant: Mutant, args: Args) -> bool:
    """A short look before gradcheck: whether both give nearly the same gradients for one random grad_output."""
    given = []
    for source in (mutant.original, mutant.source):
        try:
            inputs = copied(args)
            outputs = _differentiable(getattr(load(source), mutant.cls).apply(*inputs))
            torch.manual_seed(2)
            v = [torch.randn_like(o) for o in outputs]
            leaves = [a for a in inputs if isinstance(a, Tensor) and a.requires_grad]
            found = torch.autograd.grad(outputs, leaves, v, allow_unused=True)
            given.append([torch.zeros_like(a) if g is None else g for a, g in zip(leaves, found)])
        except Exception:
            return False
    return all(torch.allclose(a, b, rtol=1e-2, atol=1e-4, equal_nan=True) for a, b in zip(*given))


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return tuple(o for o in outputs if isinstance(o, Tensor) and o.requires_grad)

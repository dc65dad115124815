"""Inputs for a profile, in the order `check` takes them: declared, recorded, guessed. Guessed ones are made large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.findings import GradsmithError, InputsFrom
from gradsmith.inputs.examples import Wish
from gradsmith.inputs.supply import on_instance, supply
from gradsmith.lab.process.eager import uncompiled
from gradsmith.lab.process.state import preserved
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.code import as_code
from gradsmith.lab.subject.target import Target
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.growth import enlarged, runs

_SMALL = 2048  # elements of all inputs together; below, calls cost more than what they compute


@dataclass(frozen=True)
class Load:
    """What to profile, on which inputs, and where they come from."""

    target: Target
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    source: InputsFrom
    notes: tuple[str, ...] = ()


def supplied(target: Target, seed: int = 0, module: Any = None, recorded: str | None = None) -> Load:
    """Inputs that work, or an error that says what to write."""
    given = supply(target, Wish(seed, module, recorded, as_recorded=True))
    if given.missing:
        raise GradsmithError(f"{target.name}: {given.missing}")
    # Of several examples the largest: the price of calls is not what a profile is about.
    inside, (args, kwargs) = on_instance(target, max(given.examples, key=_elements))
    if given.source == "guessed":
        return _enlarged(inside, args, kwargs, seed, given.instance)
    count = _elements((args, kwargs))
    small = f"the inputs are small ({count} elements): mostly the price of calls is measured; give the sizes you use"
    return Load(inside, args, kwargs, given.source, (small,) if count < _SMALL and given.source == "declared" else ())


def _enlarged(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int, instance: str) -> Load:
    with preserved(), uncompiled():
        bench = Bench.of(target, args, kwargs, seed)
        single = bench.with_arguments(
            bench.arguments.cast(torch.float32)
        )  # a check wants float64, training has float32
        bench = single if target.module is None and runs(single) else bench
        arguments = enlarged(bench)
    args, kwargs = arguments.with_tensors({})
    return Load(target, args, kwargs, "guessed", (_keep(target, arguments, instance),))


def _keep(target: Target, arguments: Arguments, instance: str) -> str:
    code = as_code(arguments)
    code = code.replace("(", f"({instance}, ", 1) if instance else code
    return f'the inputs were guessed; keep or correct them: gradsmith_inputs = {{"{target.name}": lambda: {code}}}'


def _elements(values: Any) -> int:
    return sum(v.numel() for v in pytree.tree_leaves(values) if isinstance(v, Tensor))

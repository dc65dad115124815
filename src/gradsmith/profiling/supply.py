"""Inputs for a profile, in the order `check` takes them: declared, recorded, guessed. Guessed ones are made large enough."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.findings import GradsmithError, InputsFrom, one_line
from gradsmith.inputs.code import as_code
from gradsmith.inputs.declared import built, declared
from gradsmith.inputs.guess import guess
from gradsmith.inputs.modules import constructed, is_module_class
from gradsmith.lab.arguments import Arguments
from gradsmith.lab.binding import Example
from gradsmith.lab.eager import uncompiled
from gradsmith.lab.state import preserved, seed_all
from gradsmith.lab.target import Target, resolve
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.growth import enlarged, runs

_SMALL = 2048  # elements of all inputs together; below, calls cost more than what they compute


@dataclass(frozen=True)
class Supply:
    """What to profile, on which inputs, and where they come from."""

    target: Target
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    source: InputsFrom
    notes: tuple[str, ...] = ()


def supplied(target: Target, seed: int = 0, module: Any = None, recorded: str | None = None) -> Supply:
    """Inputs that work, or an error that says what to write."""
    home = module or sys.modules.get(getattr(target.function or target.original, "__module__", ""))
    builders = declared(target.function or target.original, home, target.name)
    if builders:
        with preserved():
            seed_all(seed)
            try:
                args, kwargs = built(builders[0])
            except Exception as error:  # the user's declaration: their error, in one line
                raise GradsmithError(f"the declared inputs of {target.name} raise {one_line(error)}") from None
        return _declared(target, args, kwargs, seed)
    if (examples := _recorded(target, seed, recorded)) is not None:
        args, kwargs = max(examples, key=lambda example: _elements(example[0]))
        return Supply(target, args, kwargs, "recorded")
    return _guessed(target, seed)


def _declared(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Supply:
    if is_module_class(target.original):
        if args and isinstance(args[0], nn.Module):
            target, args = resolve(args[0]), args[1:]
        else:
            target = _built_for(target, args, kwargs, seed)
    count = _elements((*args, *kwargs.values()))
    small = f"the inputs are small ({count} elements): mostly the price of calls is measured; give the sizes you use"
    return Supply(target, args, kwargs, "declared", (small,) if count < _SMALL else ())


def _built_for(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Target:
    """An instance of the class that takes these inputs."""
    last = ""
    for made in _instances(target.original, seed):
        if isinstance(made, str):
            last = made
            continue
        candidate = resolve(made)
        if runs(Bench.of(candidate, args, kwargs, seed)):
            return candidate
    name = target.name
    text = f"{name} is a class, and building it needs arguments ({last or 'none that fit these inputs were found'})"
    raise GradsmithError(f'{text}; write gradsmith_inputs = {{"{name}": lambda: ({name}(...), torch.randn(3, 4))}}')


def _instances(cls: type[nn.Module], seed: int) -> Iterator[nn.Module | str]:
    try:
        yield cls()
    except TypeError:  # its constructor wants arguments
        for made in constructed(cls, seed):
            yield made if isinstance(made, str) else made.module


def _recorded(target: Target, seed: int, recorded: str | None) -> list[Example] | None:
    if recorded is not None:
        from gradsmith.inputs.recorded_file import examples_in

        return examples_in(Path(recorded), target.name, seed) or None
    recording = sys.modules.get("gradsmith.recording.tape")
    tape = recording.latest() if recording is not None else None
    if tape is None or target.function not in tape.functions:
        return None
    return [(args, {}) for call in tape.of(target.function) for args in call.examples] or None


def _guessed(target: Target, seed: int) -> Supply:
    if not is_module_class(target.original):
        return _enlarged(target, seed, "")
    last: GradsmithError | None = None
    for made in constructed(target.original, seed):
        if not isinstance(made, str):
            try:
                return _enlarged(resolve(made.module), seed, made.code)
            except GradsmithError as error:
                last = error
    wanted = f'gradsmith_inputs = {{"{target.name}": lambda: ({target.name}(...), torch.randn(3, 4))}}'
    raise last or GradsmithError(f"no constructor arguments worked for {target.name}; write {wanted}")


def _enlarged(target: Target, seed: int, instance: str) -> Supply:
    from gradsmith.checking import declaration

    found = guess(target, seed=seed)
    if found.args is None:
        why = f"; most often {found.errors[0][:120]}" if found.errors else ""
        raise GradsmithError(f"no inputs worked for {target.name}{why}; write {declaration(target)}")
    with preserved(), uncompiled():
        bench = Bench.of(target, found.args, found.kwargs, seed)
        single = bench.with_arguments(
            bench.arguments.cast(torch.float32)
        )  # a check wants float64, training has float32
        bench = single if target.module is None and runs(single) else bench
        arguments = enlarged(bench)
    args, kwargs = arguments.with_tensors({})
    return Supply(target, args, kwargs, "guessed", (_keep(target, arguments, instance),))


def _keep(target: Target, arguments: Arguments, instance: str) -> str:
    code = as_code(arguments)
    code = code.replace("(", f"({instance}, ", 1) if instance else code
    return f'the inputs were guessed; keep or correct them: gradsmith_inputs = {{"{target.name}": lambda: {code}}}'


def _elements(values: Any) -> int:
    return sum(v.numel() for v in pytree.tree_leaves(values) if isinstance(v, Tensor))

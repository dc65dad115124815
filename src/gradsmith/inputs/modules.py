"""nn.Modules as subjects: a class is built first, from its declaration, as it was recorded, or by guessing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradsmith.checking import Options, examine, unverified
from gradsmith.findings import InputsFrom, Report, one_line
from gradsmith.folding import together
from gradsmith.inputs.guess.clues import NOTHING, Clue, signature_clues
from gradsmith.inputs.guessed import examine_guessed
from gradsmith.lab.binding import Example, moved_to
from gradsmith.lab.state import preserved, seed_all
from gradsmith.lab.target import Target, resolve

_ATTEMPTS = 60
# What constructors call their sizes. Inputs and outputs differ, so that a transposed weight cannot hide.
_SIZES = (
    (r"(in|input)_?\w*|d_model|\w*embed\w*|n_?in|features?|num_features|channels|dim|size|normalized_shape", (4, 8)),
    (r"(out|output|hidden)_?\w*|n_?out|units|width|d_\w+|inner_dim", (6, 4, 8)),
    (r"(num|n)_?heads?|heads?|groups?", (2, 1)),
    (r"(num|n)_?(layers?|steps?|blocks?|classes|embeddings)|depth|vocab_size", (2, 6)),
    (r"kernel(_size)?|window(_size)?", (3, 2)),
    (r"stride|dilation|padding", (1,)),
)


@dataclass(frozen=True)
class Built:
    """An instance and the call that made it."""

    module: nn.Module
    code: str


def is_module_class(subject: Any) -> bool:
    return isinstance(subject, type) and issubclass(subject, nn.Module)


def examine_built_modules(target: Target, examples: Sequence[Example], options: Options, source: InputsFrom) -> Report:
    """A declared or recorded example of a class is `(instance, *inputs of its forward)`."""
    total: Report | None = None
    for args, kwargs in examples:
        if not args or not isinstance(args[0], nn.Module):
            wanted = f"lambda: ({target.name}(...), torch.randn(3, 4))"
            return unverified(target, f"the declared inputs of a module class start with an instance: {wanted}")
        module = resolve(args[0])
        report = examine(module, [(args[1:], kwargs)], source, options)
        total = report if total is None else together(total, report)
    assert total is not None
    return total


def examine_recorded_module(target: Target, options: Options, device: Any = None) -> Report | None:
    """Built as a recorded file says, or the live instance of the tape that stopped last; None where neither knows it."""
    if options.recorded is not None:
        from gradsmith.inputs.recorded_file import modules_in

        if stored := modules_in(Path(options.recorded), target.original, options.seed):
            return examine_built_modules(target, [moved_to(e, device) for e in stored], options, "recorded")
    recording = sys.modules.get("gradsmith.recording.tape")
    tape = recording.latest() if recording is not None else None
    calls = [call for call in tape.modules if type(call.module) is target.original] if tape is not None else []
    if not calls:
        return None
    from gradsmith.inputs.recorded_modules import check_recorded_module

    return check_recorded_module(calls, options)


def examine_guessed_module(target: Target, options: Options, device: Any = None) -> Report:
    """Build the class with guessed arguments, then check the instance on guessed inputs."""
    last = ""
    for built in constructed(target.original, options.seed):
        if isinstance(built, str):
            last = built
            continue
        report = examine_guessed(resolve(built.module), options, device)
        if report.subjects[0].inputs_from == "guessed":
            subjects = [
                replace(s, inputs_code=s.inputs_code.replace("(", f"({built.code}, ", 1)) for s in report.subjects
            ]
            notes = [note.replace("lambda: (", f"lambda: ({built.code}, ", 1) for note in report.notes]
            return replace(report, subjects=subjects, notes=notes)
        last = report.subjects[0].reason
    wanted = f'gradsmith_inputs = {{"{target.name}": lambda: ({target.name}(...), torch.randn(3, 4))}}'
    return unverified(target, f"no constructor arguments worked ({last or 'none could be proposed'}); write {wanted}")


def constructed(cls: type[nn.Module], seed: int) -> Iterator[Built | str]:
    """Instances of `cls`, or why it could not be built; a few distinct ones at most."""
    clues = [c for c in signature_clues(cls, skip_first=False) if not c.starred]
    needed = [c for c in clues if c.default is NOTHING or _size_of(c)]
    options = [_values(clue) for clue in needed]
    made = 0
    for rank in range(_ATTEMPTS):
        chosen = _choice(options, rank)
        if chosen is None or made == 3:
            return
        kwargs = {clue.name: value for clue, value in zip(needed, chosen)}
        with preserved():
            seed_all(seed)
            try:
                module = cls(**kwargs)
            except Exception as error:  # the user's constructor on arguments it may not want
                yield one_line(error)
                continue
        made += 1
        yield Built(module, f"{cls.__name__}({', '.join(f'{k}={v!r}' for k, v in kwargs.items())})")


def _size_of(clue: Clue) -> tuple[int, ...]:
    default = clue.default
    if default is not NOTHING and (not isinstance(default, int) or default <= 16):
        return ()  # no size, or the author's own is small enough to check
    return next((sizes for pattern, sizes in _SIZES if re.fullmatch(pattern, clue.name.lower())), ())


def _values(clue: Clue) -> list[Any]:
    sizes = list(_size_of(clue))
    if clue.declared.kind == "float":
        return [0.5, 1.0]
    if clue.declared.kind == "bool":
        return [True, False]
    return [*sizes, *(n for n in (4, 2, 1) if n not in sizes), 0.5, torch.tanh, True]


def _choice(options: list[list[Any]], rank: int) -> list[Any] | None:
    """The rank-th combination, the first values varying slowest; None after the last."""
    chosen = []
    for values in options:
        chosen.append(values[rank % len(values)])
        rank //= len(values)
    return chosen if rank == 0 else None

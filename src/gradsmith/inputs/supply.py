"""Where a subject's inputs come from: declared, else recorded, else guessed. For check, profile and record alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from gradsmith.findings import one_line
from gradsmith.inputs import recorded
from gradsmith.inputs.declared import built, declared
from gradsmith.inputs.examples import Supply, Wish
from gradsmith.inputs.guess import Guess, guess
from gradsmith.inputs.latest import latest
from gradsmith.inputs.modules import constructed, instances, is_module_class
from gradsmith.inputs.refitted import refitted, restoring
from gradsmith.lab.process.alone import WORDS, joined_alone
from gradsmith.lab.process.state import preserved, seed_all
from gradsmith.lab.subject.binding import Example, moved_to
from gradsmith.lab.subject.standins import StandInUsed
from gradsmith.lab.subject.target import Target, resolve
from gradsmith.source import Method, model_of
from gradsmith.source.legacy import kept_on_self
from gradsmith.source.returns import returns_nothing


def supply(target: Target, wish: Wish | None = None) -> Supply:
    """Inputs for the subject, or the reason why there are none. Runs no check and writes no verdict.

    >>> import torch
    >>> supply(resolve(torch.nn.functional.softsign)).source
    'guessed'
    """
    wish = wish or Wish()
    written = target.function or getattr(
        target.original, "_init_fn", target.original
    )  # of a custom operator, its function
    home = wish.module or sys.modules.get(getattr(written, "__module__", ""))
    builders = declared(target.function or target.original, home, target.name)
    if builders:
        return _declared(target, builders, wish)
    return _recorded(target, wish) or _guessed(target, wish)


def declaration(target: Target) -> str:
    """The one line a user has to write so that gradsmith can run the subject."""
    names = ", ".join(name.rstrip("*") for name in target.names) or "..."
    if is_module_class(target.original):
        names = f"{target.name}(...), torch.randn(3, 4)"
        return f'gradsmith_inputs = {{"{target.name}": lambda: ({names})}}'
    return f'gradsmith_inputs = {{"{target.name}": lambda: ({names},)}}'


def on_instance(target: Target, example: Example) -> tuple[Target, Example]:
    """An example of a module class begins with the instance to run: that one, on the rest."""
    args, kwargs = example
    if not is_module_class(target.original):
        return target, example
    return resolve(args[0]), (args[1:], kwargs)


def _declared(target: Target, builders: Sequence[Callable[[], Any]], wish: Wish) -> Supply:
    examples: list[Example] = []
    for builder in builders:
        with preserved():
            seed_all(wish.seed)
            try:
                examples.append(moved_to(built(builder), wish.device))
            except Exception as error:  # the user's declaration: report their error, not a traceback of ours
                line = getattr(getattr(builder, "__code__", None), "co_firstlineno", None)
                at = f" (line {line})" if line else ""
                return Supply(missing=f"the declared inputs{at} raise {one_line(error)}")
    if not is_module_class(target.original):
        return Supply(tuple(examples), "declared")
    return _with_instances(target, examples, wish.seed)


def _with_instances(target: Target, examples: Sequence[Example], seed: int) -> Supply:
    """Examples of a module class, each behind an instance: the one that was declared, or one that takes the inputs."""
    complete: list[Example] = []
    notes: dict[str, None] = {}
    for args, kwargs in examples:
        if args and isinstance(args[0], nn.Module):
            complete.append((args, kwargs))
            continue
        fitting = (b for b in instances(target.original, seed) if recorded.runs(resolve(b.module), args, kwargs, seed))
        built_for = next(fitting, None)
        if built_for is None:
            wanted = f"lambda: ({target.name}(...), torch.randn(3, 4))"
            return Supply(missing=f"the declared inputs of a module class start with an instance: {wanted}")
        complete.append(((built_for.module, *args), kwargs))
        notes[f"{target.name}: no instance is declared, and {built_for.code} was built, which takes the inputs"] = None
    return Supply(tuple(complete), "declared", notes=tuple(notes))


def _recorded(target: Target, wish: Wish) -> Supply | None:
    """What a file of recorded calls says, or the tape that stopped last in this process; None where neither knows it."""
    whole = is_module_class(target.original)
    if wish.recorded is not None:
        from gradsmith.inputs.recorded_file import examples_in, modules_in

        path = Path(wish.recorded)
        stored = modules_in(path, target.original, wish.seed) if whole else examples_in(path, target.name, wish.seed)
        if stored:
            return Supply(tuple(moved_to(example, wish.device) for example in stored), "recorded")
    tape = latest()
    if tape is None:
        return None
    if whole:
        calls = [call for call in tape.modules if type(call.module) is target.original]
        return recorded.of_modules(calls) if calls else None
    if target.function is None or target.function not in tape.functions:
        return None
    if wish.as_recorded:
        return recorded.as_they_were(tape, target)
    return recorded.of_function(tape, target, wish.seed)


def _guessed(target: Target, wish: Wish) -> Supply:
    if wish.guessing is not None:
        wish.guessing()
    if is_module_class(target.original):
        return _guessed_module(target, wish)
    model = model_of(target.function) if target.function is not None else None
    if model is not None and kept_on_self(model):
        return Supply(missing="a Function of the old style cannot be called: its options are kept on self")
    if model is not None and model.forward is not None and (reason := _nothing_to_run(model.forward)):
        return Supply(missing=reason)
    tried = replace(target, call=restoring(target.call))
    found = guess(tried, seed=wish.seed, device=wish.device, may_join=wish.own_process)
    found = refitted(target, found, wish.seed)
    if found.args is None:
        if absent := _absent(found):
            return Supply(missing=absent)
        why = found.needs or f"no inputs worked ({_tried(found)})"
        return Supply(missing=f"{why}; write {declaration(target)}")
    caller = f" as {found.caller} passes them on" if found.caller else ""
    notes = (_kept(target, found.code, caller),)
    return Supply(((found.args, found.kwargs),), "guessed", found.code, notes=notes, assumes=_surroundings())


def _nothing_to_run(forward: Method) -> str:
    """What no inputs would change."""
    if forward.raises_only or forward.is_stub:
        return "its forward is left to the classes derived from it"
    return "its forward returns nothing" if returns_nothing(forward) else ""


def _surroundings() -> tuple[str, ...]:
    """What was put around the subject so that it runs."""
    return (WORDS,) if joined_alone() else ()


def _guessed_module(target: Target, wish: Wish) -> Supply:
    """Built with guessed arguments, the instance then called with guessed inputs."""
    last = ""
    for made in constructed(target.original, wish.seed):
        if isinstance(made, str):
            last = made
            continue
        inner = _guessed(resolve(made.module), replace(wish, guessing=None))
        if inner.missing:
            last = inner.missing
            continue
        ((args, kwargs),) = inner.examples
        code = inner.code.replace("(", f"({made.code}, ", 1)
        return replace(
            inner,
            examples=(((made.module, *args), kwargs),),
            code=code,
            instance=made.code,
            notes=(_kept(target, code),),
        )
    missing = f"no constructor arguments worked ({last or 'none could be proposed'}); write {declaration(target)}"
    return Supply(missing=missing)


def _kept(target: Target, code: str, caller: str = "") -> str:
    guessed = f"{target.name}: inputs were guessed{caller}"
    if not code:
        return f"{guessed}; declare inputs to keep them"
    return f'{guessed}; keep or correct them, or let --write-inputs write them: gradsmith_inputs = {{"{target.name}": lambda: {code}}}'


def _absent(found: Guess) -> str:
    """What is not here, where forward ran into it whatever it was given: other inputs would not help."""
    kind, _, said = next(iter(found.errors), "").partition(": ")
    if kind != StandInUsed.__name__:
        return ""
    used, _, why = said.partition(" is a stand-in: ")
    return f"forward uses {used}, and {why}; inputs cannot help" if why else f"{said}; inputs cannot help"


def _tried(found: Guess) -> str:
    if not found.attempts:
        return found.errors[0] if found.errors else "nothing could be proposed"
    most = f", most often {found.errors[0][:120]}" if found.errors else ""
    return f"{found.attempts} guesses tried{most}"

"""Recorded inputs: check the Functions of a tape on what they were really given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.checking import Options, examine, unverified
from gradsmith.findings import Report
from gradsmith.lab.binding import Example
from gradsmith.lab.eager import uncompiled
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.state import preserved, seed_all
from gradsmith.lab.target import Target, resolve
from gradsmith.lab.values import finite
from gradsmith.recording.scaling import CHECKED, elements, scaled

if TYPE_CHECKING:
    from gradsmith.recording.tape import Tape

MOST_EXAMPLES = 3  # of one Function; more signatures add time, rarely knowledge


def check_tape(tape: Tape, **options: Any) -> Report:
    """One report on every Function of the tape; the first note says what ran."""
    total = Report(notes=[tape.summary()])
    for cls in tape.functions:
        total = total.extended(check_recorded(tape, cls, Options(**options)))
    if tape.modules:
        from gradsmith.inputs.recorded_modules import check_modules

        total = check_modules(tape, total, Options(**options))
    return replace(total, functions=len(tape.functions), files=len({s.path for s in total.subjects}))


def check_recorded(tape: Tape, cls: type, options: Options) -> Report:
    """One Function on its recorded inputs, the ones that need a gradient and differ most first."""
    target = resolve(cls)
    ran = {"calls": tape.count(cls), "lines": sorted({line for call in tape.of(cls) for line in call.lines})}
    examples: list[Example] = []
    notes: list[str] = []
    for call in tape.of(cls):
        usable = next((args for args in call.examples if _wants_gradient(args)), None)
        if usable is None or len(examples) == MOST_EXAMPLES:
            continue
        args, how = _small_enough(target, usable, options.seed)
        varied = _varied(target, args, options.seed)
        if varied is not None:
            args = varied
            notes.append(
                f"{target.name}: recorded inputs were constant (all ones, all zeros); they were varied a little"
            )
        examples.append((args, {}))
        if how or call.scaled:
            notes.append(f"{target.name}: recorded inputs scaled down for the check ({how or call.scaled})")
    if examples:
        with uncompiled():
            report = examine(target, examples, "recorded", options)
    elif any(call.examples for call in tape.of(cls)):
        report = unverified(target, "it ran, but never on an input that requires grad")
    else:
        report = unverified(target, "it ran only inside transforms or on tensor subclasses, whose values are not kept")
    subjects = [replace(s, measured={**s.measured, **ran}) for s in report.subjects]
    return replace(report, subjects=subjects, notes=[*report.notes, *notes])


def _varied(target: Target, args: tuple[Any, ...], seed: int) -> tuple[Any, ...] | None:
    """Tests like `torch.ones(2, 3)`, on which x * x is the identity: a constant tells one Function from few others."""
    generator = torch.Generator().manual_seed(seed)

    def vary(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.requires_grad or not value.is_floating_point():
            return value
        plain = value.detach()
        if plain.numel() < 2 or not bool((plain == plain.flatten()[0]).all()):
            return value
        noise = torch.randn(plain.shape, generator=generator).to(plain)
        return (plain + 0.2 * noise).requires_grad_()

    varied = pytree.tree_map(vary, args)
    if all(a is b for a, b in zip(pytree.tree_leaves(args), pytree.tree_leaves(varied))):
        return None
    with preserved():
        seed_all(seed)
        try:
            outputs = flat_outputs(target.call(*varied))[0]
        except Exception:  # the constant was meant
            return None
    return varied if all(finite(out) for out in outputs) else None


def _wants_gradient(args: tuple[Any, ...]) -> bool:
    return any(isinstance(v, Tensor) and v.requires_grad for v in pytree.tree_leaves(list(args)))


def _small_enough(target: Target, args: tuple[Any, ...], seed: int) -> tuple[tuple[Any, ...], str]:
    """Cut down where the Function still runs on the cut inputs; as they are where it does not."""
    if elements(args) <= CHECKED:
        return args, ""
    smaller, how = scaled(args)
    with preserved():
        seed_all(seed)
        try:
            target.call(*smaller)
        except Exception:  # sizes that depend on one another in ways slicing cannot know
            return args, ""
    return smaller, how

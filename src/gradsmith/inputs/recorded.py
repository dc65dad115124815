"""Recorded inputs: what Functions and modules were really called with, made fit to be run again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.findings import InputsFrom
from gradsmith.inputs.examples import Supply
from gradsmith.inputs.scaling import CHECKED, elements, scaled
from gradsmith.inputs.shrinking import shrunk
from gradsmith.lab.measure.values import finite
from gradsmith.lab.process.state import preserved, seed_all
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.binding import Example, unusable
from gradsmith.lab.subject.target import Target, short_name

if TYPE_CHECKING:
    from gradsmith.lab.inside import Inside
    from gradsmith.recording.call import Call
    from gradsmith.recording.modules import ModuleCall
    from gradsmith.recording.tape import Tape

MOST_EXAMPLES = 3  # of one Function; more signatures add time, rarely knowledge


def as_they_were(tape: Tape, target: Target) -> Supply | None:
    """All calls on tape in their full size; None where no values were kept."""
    assert target.function is not None
    examples: list[Example] = [(args, {}) for call in tape.of(target.function) for args in call.examples]
    return Supply(tuple(examples), "recorded") if examples else None


def of_function(tape: Tape, target: Target, seed: int) -> Supply:
    """A few of the calls on tape, those that need a gradient and differ most, small enough to be checked."""
    assert target.function is not None
    calls = most_different_first(tape.of(target.function))
    ran = {"calls": tape.count(target.function), "lines": sorted({line for call in calls for line in call.lines})}
    examples: list[Example] = []
    notes: list[str] = []
    for call in calls:
        usable = next((args for args in call.examples if _wants_gradient(args)), None)
        if usable is None or len(examples) == MOST_EXAMPLES:
            continue
        args, how = _small_enough(target, usable, seed)
        varied = _varied(target, args, seed)
        if varied is not None:
            args = varied
            notes.append(
                f"{target.name}: recorded inputs were constant (all ones, all zeros); they were varied a little"
            )
        examples.append((args, {}))
        if how or call.scaled:
            notes.append(f"{target.name}: recorded inputs scaled down for the check ({how or call.scaled})")
    untried = sum(any(_wants_gradient(args) for args in call.examples) for call in calls) - len(examples)
    if untried > 0:
        notes.append(f"{target.name}: {untried} other ways in which it was called were not tried")
    if not examples and any(call.examples for call in calls):
        missing = "it ran, but never on an input that requires grad"
    elif not examples:
        missing = "it ran only inside transforms or on tensor subclasses, whose values are not kept"
    else:
        missing = ""
    return Supply(tuple(examples), "none" if missing else "recorded", notes=tuple(notes), missing=missing, ran=ran)


def most_different_first(calls: Sequence[Call]) -> list[Call]:
    """The calls, each one as unlike those before it as possible: in types, ranks, sizes and options; the first stays first."""
    waiting = {id(call): (call, _looks(call)) for call in calls}
    order: list[tuple[Call, tuple[Any, ...]]] = []
    while waiting:
        best = max(waiting, key=lambda one: min((_unlike(waiting[one][1], seen) for _, seen in order), default=0))
        order.append(waiting.pop(best))
    return [call for call, _ in order]


def _looks(call: Call) -> tuple[Any, ...]:
    """What each argument of a call looks like: for a tensor, from what matters most to what matters least."""
    args = call.examples[0] if call.examples else ()
    return tuple(
        (a.dtype, a.dim(), tuple(a.shape), a.requires_grad) if isinstance(a, Tensor) else _said(a) for a in args
    )


def _said(value: Any) -> Any:
    return (type(value), repr(value)) if isinstance(value, (bool, int, float, str, type(None), tuple)) else type(value)


def _unlike(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    """In how many respects two calls differ."""
    pairs = zip_longest(one, other)
    return sum(sum(p != q for p, q in zip_longest(a, b)) if _both(a, b) else int(a != b) for a, b in pairs)


def _both(a: Any, b: Any) -> bool:
    return isinstance(a, tuple) and isinstance(b, tuple)


def of_inside(inside: Inside, target: Target, whole: str, source: InputsFrom, seed: int) -> Supply:
    """What a Function was given while the whole ran, one example for each signature, small enough to be checked."""
    ran: dict[str, Any] = {"calls": inside.calls, "inside": whole}
    refused = {
        key: unusable(Arguments.of(args, kwargs, target.names)) for key, (args, kwargs) in inside.examples.items()
    }
    examples: list[Example] = []
    notes: list[str] = []
    for key, (args, kwargs) in inside.examples.items():
        if not refused[key]:
            args, how = _small_enough(target, args, seed) if not kwargs else (args, "")
            examples.append((args, kwargs))
            notes += [f"{target.name}: inputs inside {whole} scaled down for the check ({how})"] if how else []
    if examples:
        return Supply(tuple(examples), "guessed" if source == "guessed" else "recorded", notes=tuple(notes), ran=ran)
    missing = next(
        iter(refused.values()), "it ran only inside transforms or on tensor subclasses, whose values are not kept"
    )
    return Supply(missing=missing, ran=ran)


def of_modules(calls: Sequence[ModuleCall]) -> Supply:
    """The first live instance of one class, on what it was called with."""
    call = calls[0]
    ran: dict[str, Any] = {"constructed": call.code, "runs": [short_name(cls) for cls in call.functions]}
    ran |= {"lines": [call.built.line]} if call.built is not None else {}
    example = ((call.module, *call.args), dict(call.kwargs))
    return Supply((example,), "recorded", notes=(f"{call.name}: {constructed(calls)}",), ran=ran)


def constructed(calls: Sequence[ModuleCall]) -> str:
    """How the instances on tape were built, and what runs in them."""
    ways = dict.fromkeys(f"{c.code} at {c.built.line}" if c.built else "before the tape ran" for c in calls)
    runs = dict.fromkeys(short_name(cls) for c in calls for cls in c.functions)
    return f"built as {', '.join(ways)}; runs {', '.join(runs)}".replace("built as before", "built before")


def runs(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> bool:
    """Whether the subject takes these arguments."""
    with preserved():
        seed_all(seed)
        try:
            target.call(*args, **kwargs)
        except Exception:  # the user's code, on arguments it may not want
            return False
    return True


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
    if runs(target, smaller, {}, seed):
        return smaller, how
    # Sizes may depend on one another in ways slicing cannot know: indices, multiples, numbers that state a size.
    with preserved():
        smaller, how = shrunk(target, args, seed)
    return (smaller, how) if runs(target, smaller, {}, seed) else (args, "")

"""`gs.derive`: the source of a Function whose backward was derived from a plain forward, and verified by `gs.check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from gradsmith.checking.run import check
from gradsmith.deriving.deriving import Derived, derived
from gradsmith.deriving.refusal import Refused
from gradsmith.findings import GradsmithError, Report
from gradsmith.inputs.supply import supply
from gradsmith.lab import Arguments
from gradsmith.lab.subject.code import as_code
from gradsmith.lab.subject.target import resolve


@dataclass(frozen=True)
class WrittenSource:
    """The source, the derivation behind it, and the report that verified it."""

    source: str
    derivation: Derived
    report: Report


def derive(
    fn: Callable[..., Any],
    *inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    fast: bool = False,
    test: bool = False,
    level: str = "standard",
) -> str:
    """The source of a `torch.autograd.Function` for `fn`, with backward written out, in `fn`'s own names.

    Nothing comes back unless `gs.check` has verified it; what cannot be derived raises a GradsmithError that says at which
    line, why, and what to write instead. Without inputs the declared, recorded or guessed ones are used. `fast` keeps
    more and computes less again; `test` adds a test.

    >>> import torch, gradsmith as gs
    >>> def softsquare(x):
    ...     return x * x / (1 + x)
    >>> source = gs.derive(softsquare, torch.rand(3, 4, dtype=torch.float64, requires_grad=True))
    >>> "def backward(ctx, grad_output):" in source
    True
    """
    return written(fn, inputs, dict(kwargs or {}), fast=fast, test=test, level=level).source


def written(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    fast: bool = False,
    test: bool = False,
    level: str = "standard",
) -> WrittenSource:
    """Derive, then prove."""
    if not args and not kwargs:
        args, kwargs = _supplied(fn)
    try:
        made = derived(fn, args, kwargs, fast=fast)
    except Refused as refusal:
        raise refusal.of(getattr(fn, "__qualname__", type(fn).__name__)) from None
    examples = _examples(made, args, kwargs)
    like = _reference(made)
    report = check(made.function, *examples, level=level, gradient="surrogate" if like is not None else None, like=like)
    _proved(report)
    source = made.source + (_test(made, examples, stops=like is not None) if test else "")
    return WrittenSource(source, made, report)


def _reference(made: Derived) -> Callable[..., Any] | None:
    """The user's forward, where it stops a gradient on purpose: then its own derivative is what autograd makes of it."""
    reading = made.reading
    if all(node.op != "detach" for node in reading.graph.pool.values()):
        return None
    return lambda *given: reading.fn(**dict(zip(reading.inputs, given)), **reading.options)


def _supplied(fn: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    target = resolve(fn)
    found = supply(target)
    if found.missing:
        raise GradsmithError(f"{target.name}: {found.missing}")
    args, kwargs = found.examples[0]
    return args, dict(kwargs)


def _examples(made: Derived, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """What the Function takes: tensors and numbers, each tensor that gets a gradient a leaf that requires one."""
    bound = made.reading.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    examples = []
    given = made.reading.containers.flat(bound.arguments)
    for name in made.reading.inputs:
        value = given[name]
        if isinstance(value, torch.Tensor):
            value = value.detach().clone().requires_grad_(name in made.wanted)
        examples.append(value)
    return examples


def _proved(report: Report) -> None:
    """Raise unless the report verifies the derivation without a warning."""
    serious = [f for f in report.findings if f.severity in ("error", "warning")]
    if report.ok and not serious:
        return
    said = serious[0].message if serious else report.subjects[0].reason or "it could not be verified"
    raise Refused(f"what was derived did not pass `gs.check`, so it is not shown: {said}")


def _test(made: Derived, examples: list[Any], *, stops: bool) -> str:
    """A test that a user can keep beside the Function."""
    name = made.function.__name__
    code = as_code(Arguments.of(tuple(examples)))
    declared = ', gradient="surrogate"' if stops else ""
    return (
        f"\n\ndef test_{made.reading.name.strip('_')}():\n"
        f"    import gradsmith as gs\n\n"
        f"    gs.check({name}, *{code}{declared}).raise_if_failed()\n"
    )

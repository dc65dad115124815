"""From a plain forward to the source of a Function, compared with autograd at every broadcast and size we can think of."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from gradsmith.deriving.assembling import Text
from gradsmith.deriving.expressions import NotAtHand
from gradsmith.deriving.guarding import conditions
from gradsmith.deriving.naming import unique
from gradsmith.deriving.node import Node
from gradsmith.deriving.reading import Reading, read
from gradsmith.deriving.refusal import LoopRefused, Refused
from gradsmith.deriving.saving import Plan, planned
from gradsmith.deriving.sweep import swept
from gradsmith.deriving.trying import (
    DERIVED,
    compared,
    kept_by_autograd,
    other_numbers,
    second_agrees,
    single_agrees,
    variations,
    without_gradient,
)

_numbers = count()
SINGLE = "float32 inputs"


@dataclass(frozen=True)
class Derived:
    """The source, what it keeps, and the live wrapper and Function; a wrapper of lists takes their tensors by name here."""

    source: str
    reading: Reading
    plan: Plan
    function: Any
    wrapper: Callable[..., Any]
    example: dict[str, Any]
    wanted: frozenset[str]
    variations_tried: int


def derived(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, fast: bool = False) -> Derived:
    """What is derived of `fn` at the example; a refusal that has no line of its own has that of `def`."""
    try:
        return _derived(fn, args, kwargs, fast=fast)
    except Refused as refusal:
        code = getattr(inspect.unwrap(fn) if callable(fn) else fn, "__code__", None)
        raise refusal.at(code.co_firstlineno if code is not None else None) from None


def _derived(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, fast: bool) -> Derived:
    """The first of: exact for every broadcast; sizes of the example tested in forward; ranks, too; every shape."""
    inner: Derived | None = None
    partial: tuple[int, Derived] | None = None  # right wherever it runs, but raises so often where forward runs
    ranks: frozenset[str] = frozenset()  # inputs of which it takes one number of dimensions only
    refusal: Refused | None = None
    looped: Refused | None = None  # why a loop could not stay one
    fixed: frozenset[str] = frozenset()  # numbers for whose value alone it is right
    literal = unrolled = once = False
    attempts = [(False, 0), (True, 1), (True, 2), (True, 3)]
    while attempts:
        trusting, level = attempts.pop(0)
        try:
            made = _once(
                fn,
                args,
                kwargs,
                trusting=trusting,
                level=level,
                ranks=ranks,
                fast=fast,
                literal=literal,
                unrolled=unrolled,
                fixed=fixed,
                once=once,
            )
        except LoopRefused as error:
            refusal = looped = looped or error
            if not unrolled:
                unrolled = True
                attempts.insert(0, (trusting, level))
            continue
        except Refused as error:
            refusal = refusal if level == 3 and refusal is not None else _both(looped, error)
            continue
        bound = _right_for_one_number(made)
        if bound:
            fixed |= bound
            attempts.insert(0, (trusting, level))
            continue
        wrong, raises = _first_wrong(made)
        if wrong is None and raises:
            ranks |= _ranks(made, raises)
            if partial is None or len(raises) < partial[0]:
                partial = (len(raises), made)
            continue
        if wrong == SINGLE and not literal:
            literal = True  # a dtype that the source writes down is not that of the inputs
            attempts.insert(0, (trusting, level))
            continue
        if wrong is None and made.plan.twice and not _right_twice(made):
            once = True  # right, but not what autograd makes of its backward
            attempts.insert(0, (trusting, level))
            continue
        if wrong is None:
            if not trusting and _sums_inside(made):
                inner = made  # exact, but sizes are summed in the middle of formulas: tests in forward read better
                continue
            if level == 3:
                return inner or (partial[1] if partial is not None else made)
            return made
        if wrong == "":
            refusal = _at_example(made)
        else:
            told = f"the derived gradient would be wrong with {wrong}, and forward cannot tell."
            refusal = Refused(told, "Derive it with an example of that kind.")
    if inner is not None:
        return inner
    if partial is not None:
        return partial[1]
    raise refusal if refusal is not None else Refused("nothing was derived.")


def _both(looped: Refused | None, error: Refused) -> Refused:
    """Why a loop could not stay one, and why it is not read turn by turn either."""
    if looped is None or "unrolled" not in error.reason:
        return looped or error
    reason = f"{looped.reason} {error.reason[0].upper()}{error.reason[1:]}"
    return Refused(reason, f"{looped.remedy} Or {error.remedy[0].lower()}{error.remedy[1:]}", looped.line)


@dataclass(frozen=True)
class Swept:
    """The graph of forward, the gradient of each input, and the leaf that stands for the gradient of each output."""

    reading: Reading
    gradients: dict[Node, Node]
    grads: dict[Node, Node]


def gradients_of(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    trusting: bool,
    pinned: bool = False,
    literal: bool = False,
    unrolled: bool = True,
    fixed: frozenset[str] = frozenset(),
    fast: bool = False,
) -> Swept:
    """The derivative as a graph, before anything is saved or printed."""
    reading = read(
        fn, args, kwargs, trusting=trusting, pinned=pinned, literal_dtypes=literal, unrolled=unrolled, fixed=fixed
    )
    graph = reading.graph
    graph.fast = fast
    grads: dict[Node, Node] = {}
    for i, out in enumerate(reading.outputs):
        if out.needs_grad and out not in grads:
            own = None if out.op == "input" else out.name  # `grad_x` is what goes out
            name = "grad_output" if reading.single else f"grad_{own or f'output{i}'}"
            name = unique(name, set(reading.inputs), "grad_result")  # an input may be called so
            grads[out] = leaf = graph.leaf("grad", (name, i), torch.randn_like(out.value))
            leaf.name, leaf.back, leaf.dims = name, True, out.dims
    if len(grads) < sum(o.needs_grad for o in reading.outputs):
        raise Refused("forward returns the same tensor twice.", "Return it once.")
    inputs = [n for n in reading.tensors if n.needs_grad]
    return Swept(reading, swept(graph, reading.outputs, grads, inputs), grads)


def _once(
    fn: Any,
    args: Any,
    kwargs: Any,
    *,
    trusting: bool,
    level: int,
    fast: bool,
    ranks: frozenset[str] = frozenset(),
    literal: bool = False,
    unrolled: bool = False,
    fixed: frozenset[str] = frozenset(),
    once: bool = False,
) -> Derived:
    found = gradients_of(
        fn,
        args,
        kwargs,
        trusting=trusting,
        pinned=level == 3,
        literal=literal,
        unrolled=unrolled,
        fixed=fixed,
        fast=fast,
    )
    reading, gradients, grads = found.reading, found.gradients, found.grads
    inputs = [n for n in reading.tensors if n.needs_grad]
    example = _example(reading, args, kwargs)
    frozen = without_gradient(reading.fn, example, {str(n.name) for n in reading.tensors if not n.needs_grad})
    also: frozenset[Node] = frozenset()
    most = kept_by_autograd(reading.fn, example, {str(n.name) for n in inputs})
    while True:
        plan = planned(list(gradients.values()), reading.outputs, fast=fast, also=also, most=most, once=once)
        text = Text(reading, plan, gradients, grads, conditions(reading, level, ranks), frozen)
        try:
            source = text.source()
            break
        except NotAtHand as missing:
            if missing.node in also:
                raise
            also |= {missing.node}
    scope = executed(source)
    wanted = frozenset(str(n.name) for n in inputs)
    wrapper = reading.containers.packed(scope[reading.name])
    return Derived(source, reading, plan, scope[text.class_name], wrapper, example, wanted, 0)


def executed(source: str) -> dict[str, Any]:
    """The names that the source defines; its lines can be shown in reports."""
    number = next(_numbers)
    path = f"{DERIVED}{number}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    # Dynamo imports the module that a function names: no file of the user's may have that name.
    scope: dict[str, Any] = {"__name__": f"gradsmith_derived_{number}"}
    exec(compile(source, path, "exec"), scope)
    return scope


def _example(reading: Reading, args: Any, kwargs: Any) -> dict[str, Any]:
    bound = reading.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    names = {*reading.inputs, *reading.options}
    return {
        name: v.detach().double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        for name, v in reading.containers.flat(bound.arguments).items()
        if name in names
    }


def _first_wrong(made: Derived) -> tuple[str | None, list[dict[str, Any]]]:
    """Where the derived Function gives a different number from autograd ("" is the example itself, None is nowhere), and the
    examples at which it raises, not by a test of its own, where forward runs."""
    state = torch.get_rng_state()
    raises: list[dict[str, Any]] = []
    try:
        if compared(made.reading.fn, made.wrapper, made.example, set(made.wanted)) != "same":
            return "", []
        for words, varied in variations(made.example):
            outcome = compared(made.reading.fn, made.wrapper, varied, set(made.wanted))
            if outcome == "wrong":
                return words, []
            if outcome == "raises":
                raises.append(varied)
        if not single_agrees(made.reading.fn, made.wrapper, made.example, set(made.wanted)):
            return SINGLE, []
        return None, raises
    finally:
        torch.set_rng_state(state)


def _right_twice(made: Derived) -> bool:
    state = torch.get_rng_state()
    try:
        return second_agrees(made.reading.fn, made.wrapper, made.example, set(made.wanted))
    finally:
        torch.set_rng_state(state)


def _right_for_one_number(made: Derived) -> frozenset[str]:
    """The numbers (a dimension, an order) at another value of which the derived Function fails, though it is right here."""
    names = [name for name, node in made.reading.inputs.items() if not node.is_tensor]
    if not names or compared(made.reading.fn, made.wrapper, made.example, set(made.wanted)) != "same":
        return frozenset()
    state = torch.get_rng_state()
    try:
        found = set()
        for name, varied in other_numbers(made.example, names):
            outcome = compared(made.reading.fn, made.wrapper, varied, set(made.wanted))
            if outcome in ("wrong", "raises"):
                found.add(name)
        return frozenset(found)
    finally:
        torch.set_rng_state(state)


def _ranks(made: Derived, raises: list[dict[str, Any]]) -> frozenset[str]:
    """The inputs that had a different number of dimensions there."""
    tensors = {name: v for name, v in made.example.items() if isinstance(v, torch.Tensor)}
    return frozenset(n for n, v in tensors.items() for varied in raises if varied[n].ndim != v.ndim)


def _at_example(made: Derived) -> Refused:
    """Why the derived Function does not agree with autograd where it was derived."""
    outcome = compared(made.reading.fn, made.wrapper, made.example, set(made.wanted))
    if outcome == "not judged":
        told = "autograd itself raises at the example, or what it gives is not finite."
        return Refused(told, "Give an example on which forward has a derivative.")
    return Refused(
        "the derived gradient is not autograd's at the example, so it is not shown.", "Please send us this forward."
    )


def _sums_inside(made: Derived) -> bool:
    """Is a broadcast summed in the middle of backward rather than where a gradient is returned?"""
    if made.reading.graph.rather_trusting:
        return True
    backward = made.source.split("def backward", 1)[1].split("\ndef ", 1)[0]
    last = (*(f"grad_{name} = " for name in made.wanted), "return ")
    inside = [line.strip() for line in backward.splitlines() if "sum_to_size(" in line]
    return any(
        not line.startswith(last) or not line.endswith(("shape)", "_shape)")) or line.count("sum_to_size(") > 1
        for line in inside
    )

"""Is the changed class right? Asked where the old one was refuted, at the user's own example, at other values, and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradsmith.deriving.trying import compared, variations
from gradsmith.diagnosis.case import with_other_values
from gradsmith.lab.explore.explorer import Discovery, explored
from gradsmith.lab.lab import Lab, same
from gradsmith.lab.measure.gradient import claims_of
from gradsmith.lab.measure.oracle import plain_forward
from gradsmith.lab.run import forward

Serious = Callable[[Discovery], bool]


def proved(
    made: type[torch.autograd.Function],
    own: Lab,
    failing: Sequence[Lab],
    wanted: Sequence[str],
    serious: Serious,
    *,
    small: bool = False,
) -> bool:
    """Every gradient is right at every one of these examples, and nothing serious is found by exploring.

    `wanted` are the gradients that were changed: those have to be autograd's at other sizes and broadcasts, too.
    """
    labs = [_with(lab, made) for lab in (*failing, own)]
    if not all(map(_is_right, labs)):
        return False
    if not all(map(_adds_up, labs)) or not _one_at_a_time(labs[-1]):
        return False
    other = with_other_values(labs[-1])
    if other is not None and not _is_right(other):
        return False
    if not elsewhere(made, own, wanted, small=small):
        return False
    return not any(serious(discovery) for discovery in explored(labs[-1]).found)


def no_worse(lab: Lab, made: type[torch.autograd.Function], wanted: tuple[int, int]) -> bool:
    """Every gradient that was right is right, and so is the one of input and output `wanted`."""
    try:
        before = {(p.leaf.position, p.output) for p in lab.gradient.pairs if p.status == "right"}
        after = {(p.leaf.position, p.output) for p in _with(lab, made).gradient.pairs if p.status == "right"}
    except Exception:  # the changed class runs for the first time
        return False
    return {*before, wanted} <= after


def _with(lab: Lab, made: type[torch.autograd.Function]) -> Lab:
    """The same example on the changed class."""
    target = replace(lab.target, call=made.apply, function=made, original=made)
    return Lab(target, lab.arguments, lab.settings, lab.level, isolated=lab.isolated, empty=lab.empty, remembers=False)


def _is_right(lab: Lab) -> bool:
    try:
        pairs = lab.gradient.pairs
    except Exception:  # the changed class runs for the first time: whatever it raises, it is not right
        return False
    return bool(pairs) and all(pair.status == "right" for pair in pairs)


def _adds_up(lab: Lab) -> bool:
    """With the grad_outputs of all outputs at once: the sum of the gradients of each, which were found right."""
    target, arguments = lab.precise
    try:
        run = forward(target, arguments, seed=lab.settings.seed)
        v = run.normal(lab.generator(43))
        if len(v) < 2:
            return True
        together = run.gradients(v)
        alone = [claims_of(target, arguments, lab.settings, v, output) for output in v]
        for leaf in arguments.differentiable:
            parts = [g for g in (each[leaf.position] for each in alone) if g is not None]
            total = sum(parts[1:], parts[0]) if parts else None
            if not same(together[leaf.position], total, 1e-6):
                return False
    except Exception:  # the changed class, in a call that nobody tried before
        return False
    return True


def _one_at_a_time(lab: Lab) -> bool:
    """The same gradients where a single input requires grad, as the other ones may be frozen."""
    target, arguments = lab.precise
    leaves = arguments.differentiable
    if len(leaves) < 2:
        return True
    try:
        run = forward(target, arguments, seed=lab.settings.seed)
        v = run.normal(lab.generator(41))
        together = run.gradients(v)
        for leaf in leaves:
            alone = forward(target, arguments.only({leaf.position}), seed=lab.settings.seed)
            found = alone.gradients({o: g for o, g in v.items() if o in alone.differentiable})
            if not same(together[leaf.position], found[leaf.position], 1e-6):
                return False
    except Exception:  # the changed class, in a call that nobody tried before
        return False
    return True


def elsewhere(made: type[torch.autograd.Function], own: Lab, wanted: Sequence[str], *, small: bool = False) -> bool:
    """Autograd's own gradients at other sizes, broadcasts and in float32, where the user's forward runs under autograd.

    It may raise where the author's own lines do: what they were not written for, a `small` change of them need not do either.
    """
    plain = plain_forward(own.target)
    example = _named(own)
    if plain is None or example is None or own.target.function is None:
        return True
    truth, new, old = (_by_name(f, example) for f in (plain, made.apply, own.target.function.apply))
    names = set(wanted) & {name for name, value in example.items() if isinstance(value, Tensor)}
    if not names:
        return True
    if compared(truth, new, example, names) != "same":
        return True  # autograd does not see what this forward does; the examples have decided
    others = {leaf.name for leaf in own.arguments.differentiable} - names

    def unsupported(varied: dict[str, Any]) -> bool:
        if ran:
            return compared(truth, old, varied, names) == "raises"
        ranks = [(v.ndim, example[n].ndim) for n, v in varied.items() if isinstance(v, Tensor)]
        if any(now < shown or (small and now != shown) for now, shown in ranks):
            return True  # a vector where the example has a matrix: whoever tries it is told by torch
        return any(compared(truth, old, varied, {other}) == "raises" for other in others & set(varied))

    ran = compared(truth, old, example, names) != "raises"  # one that raises everywhere does not tell where it should
    for varied in _examples(example):
        outcome = compared(truth, new, varied, names)
        if outcome == "wrong" or (outcome == "raises" and not unsupported(varied)):
            return False
    return compared(truth, new, _cast(example, torch.float32), names, rtol=2e-3) != "wrong"


def _examples(example: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for _, varied in variations(example):
        yield varied
    generator = torch.Generator().manual_seed(5)
    for size in (0.3, 3.0):
        yield {n: _drawn(v, size, generator) for n, v in example.items()}


def _drawn(value: Any, size: float, generator: torch.Generator) -> Any:
    """Other numbers near the old ones: signs stay, so that roots and logarithms still exist."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    return value * (1 + size * torch.rand(value.shape, dtype=value.dtype, generator=generator))


def _cast(example: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    return {n: v.to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v for n, v in example.items()}


def _named(lab: Lab) -> dict[str, Any] | None:
    """The example by the names of forward's arguments; None where they are nested."""
    arguments, names = lab.precise[1], lab.target.names
    args, kwargs = arguments.with_tensors({leaf.position: leaf.tensor.detach() for leaf in arguments.leaves})
    plain = not kwargs and len(args) <= len(names) and not any(n.endswith("*") for n in names)
    return dict(zip(names, args)) if plain else None


def _by_name(function: Callable[..., Any], example: dict[str, Any]) -> Callable[..., Any]:
    order = list(example)
    return lambda **given: function(*(given[name] for name in order))


__all__ = ["Serious", "elsewhere", "no_worse", "proved"]

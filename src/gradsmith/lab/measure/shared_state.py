"""Whether calls of one subject disturb each other: through what they keep on classes, in globals, or in their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.explore.other_calls import OtherCall, other_calls
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.memory import kept
from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.process.kept_values import Picture, pictured
from gradsmith.lab.process.names import kept_names, owners_of
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.copies import Copies, copied
from gradsmith.lab.subject.target import short_name

Gradients = dict[int, Tensor | None]


@dataclass(frozen=True)
class Disturbed:
    """A gradient that another call changed. `through` names what that call wrote to; `error` is what backward raised."""

    leaf: Leaf | None
    words: str
    through: tuple[str, ...]
    error: Exception | None = None
    argument: bool = False  # it is an argument that both calls were given


def disturbed(lab: Lab) -> Iterator[Disturbed]:
    """The calls that change a gradient when they run between forward and backward.

    Where none of them writes to anything that outlives it, nothing can be overwritten, and each costs one forward.
    """
    owners = _owners(lab)
    with kept_names(owners):
        mine = _Call(lab, lab.precise[1])
        before = _picture(owners)
        # After each of them: the next one may put it back.
        calls = [(o, before.changed(_picture(owners))) for o in other_calls(lab) if _runs(lab, o.arguments)]
    for other, written in calls:
        for through, shared in ((tuple(written), False), (tuple(mine.written), True)):
            if through:
                with kept_names(owners):
                    found = _in_between(lab, other, through, shared=shared)
                if found is not None:
                    yield found


def remembered(lab: Lab, elsewhere: Arguments) -> Leaf | None:
    """The input whose gradient is that of an earlier call, after the inputs were changed in place as an optimizer does.

    The same tensor objects are passed both times: what is kept under them, and not under their values, is out of date.
    """
    owners, arguments = _owners(lab), lab.precise[1]
    moved = {x.position: _at(elsewhere, x.position) for x in arguments.differentiable}
    there = arguments.replaced(moved)
    with kept_names(owners):
        before = _picture(owners)
        try:
            step = _Call(lab, arguments, through=False)
            if not before.changed(_picture(owners)) and not any(vars(t) for t in step.given.passed.values()):
                return None
            step.gradients()
            fresh, again = _Call(lab, there), _Call(lab, there)
            expected, repeated = fresh.gradients(), again.gradients()
            with torch.no_grad():
                for position, tensor in moved.items():
                    step.given.leaves[position].copy_(tensor)
            step.forward()
            got = step.gradients()
        except Exception:  # forward marks its input dirty, which no leaf may be, or refuses these values
            return None
    if not _same(lab, expected, repeated):  # its own state moves on with every call
        return None
    return next((x for x in arguments.differentiable if not lab.close(expected[x.position], got[x.position])), None)


class _Call:
    """One forward on copies, whose argument objects stay at hand."""

    def __init__(self, lab: Lab, arguments: Arguments, *, through: bool = True, sharing: _Call | None = None) -> None:
        self.lab, self.given = lab, copied(arguments, through=through)
        if sharing is not None:
            self.given = _with_containers_of(sharing.given, self.given, sharing.written)
        self.written: set[str] = set()
        before = pictured(list(_containers(self.given).items()))
        self.forward()
        after = pictured(list(_containers(self.given).items()))
        self.written.update(
            key for key in _containers(self.given) if any(n.startswith(key) for n in before.changed(after))
        )

    def forward(self) -> None:
        seed_all(self.lab.settings.seed)
        self.outputs, _ = flat_outputs(self.lab.precise[0].call(*self.given.args, **self.given.kwargs))

    def gradients(self) -> Gradients:
        v = self.lab.baseline.v
        used = [o for o in v if o < len(self.outputs) and self.outputs[o].requires_grad]
        roots, given = [self.outputs[o] for o in used], [v[o].clone() for o in used]
        found = gradients(roots, list(self.given.leaves.values()), given, retain_graph=True)
        return {position: kept(grad) for position, grad in zip(self.given.leaves, found)}


def _in_between(lab: Lab, other: OtherCall, through: tuple[str, ...], *, shared: bool) -> Disturbed | None:
    mine = _Call(lab, lab.precise[1])
    try:
        theirs = _Call(lab, other.arguments, sharing=mine if shared else None)
    except Exception:  # with the containers of the first call forward does not accept it
        return None
    try:
        got = mine.gradients()
    except Exception as error:  # what was overwritten no longer fits
        found = Disturbed(None, other.words, through, error, shared)
    else:
        leaf = next((x for x in lab.precise[1].differentiable if _differs(lab, got, x)), None)
        if leaf is None:
            return None
        found = Disturbed(leaf, other.words, through, None, shared)
    del theirs  # alive until here: both graphs exist at the same time
    # A state that moves on with every call (running averages) is not what the other call has taken away.
    try:
        return found if _same(lab, _Call(lab, lab.precise[1]).gradients(), lab.baseline.gradients) else None
    except Exception:  # nothing can be told of a subject that runs once only
        return None


def _differs(lab: Lab, got: Gradients, leaf: Leaf) -> bool:
    return not lab.close(lab.baseline.gradients[leaf.position], got[leaf.position])


def _same(lab: Lab, a: Gradients, b: Gradients) -> bool:
    return all(lab.close(a[position], b[position]) for position in a)


def _runs(lab: Lab, arguments: Arguments) -> bool:
    try:
        _Call(lab, arguments)
    except Exception:  # forward may refuse the values, the option or the size
        return False
    return True


def _owners(lab: Lab) -> list[Any]:
    """Where the code can keep something: its classes, files, modules, and the objects among its arguments."""
    target = lab.target
    roots = [*lab.classes, target.module, getattr(target.original, "_init_fn", target.original)]
    roots = [root for root in roots if root is not None]
    given = [v for v in lab.precise[1].flat if hasattr(v, "__dict__") and not isinstance(v, (Tensor, type))]
    return list({id(owner): owner for owner in (*owners_of(*roots), *given)}.values())


def _picture(owners: list[Any]) -> Picture:
    return pictured([("" if hasattr(owner, "__file__") else short_name(owner), owner) for owner in owners])


def _containers(given: Copies) -> dict[str, Any]:
    named = {f"argument {number}": value for number, value in enumerate(given.args)} | given.kwargs
    return {name: value for name, value in named.items() if isinstance(value, (dict, list, set))}


def _with_containers_of(mine: Copies, theirs: Copies, names: set[str]) -> Copies:
    own = _containers(mine)
    args = tuple(own[f"argument {n}"] if f"argument {n}" in names else v for n, v in enumerate(theirs.args))
    kwargs = {key: own[key] if key in names else value for key, value in theirs.kwargs.items()}
    return Copies(theirs.leaves, theirs.passed, theirs.owned, args, kwargs)


def _at(arguments: Arguments, position: int) -> Tensor:
    return next(x.tensor.detach() for x in arguments.leaves if x.position == position)

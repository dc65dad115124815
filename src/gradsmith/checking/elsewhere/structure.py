"""Before a guess accuses: does the gradient fit on inputs of the kind its author may have meant?

A Function that is only reached by square matrices may rely on their symmetry, one with an input that forward never reads
on how it fits the others, and one that is given a function on what that function is. Of the data only structure is
excused, never values: a gradient that is right for positive numbers alone is wrong (unless forward itself keeps the
others out: see guarded.py). A single number beside the data (an exponent, a temperature) may have a range of its own.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.inputs.guess.functions import Written, others
from gradsmith.inputs.guess.objects import was_built
from gradsmith.lab.explore.tape import stopped_after
from gradsmith.lab.measure.gradient import Settings, judge
from gradsmith.lab.measure.implied import implied
from gradsmith.lab.run import forward, recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import Wrapped
from gradsmith.source import model_of
from gradsmith.source.knowledge import OF_SYMMETRIC

_OPERATIONS = 300_000  # on other values an iteration may not converge, and with other functions a loop may not end


@dataclass(frozen=True)
class Elsewhere:
    """Other arguments on which the gradient is right, and what is special about them; or only a doubt (not `proven`)."""

    args: tuple[Any, ...]
    words: str
    proven: bool = True


def where_symmetric(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Elsewhere | None:
    """The same arguments with their square matrices made symmetric, if that alone makes every gradient right."""
    squares = [i for i, a in enumerate(args) if isinstance(a, Tensor) and _is_square(a)]
    for chosen in ([[i] for i in squares] + [squares]) if squares else []:
        other = tuple(_symmetric(a) if i in chosen else a for i, a in enumerate(args))
        if is_right(target, other, kwargs, seed):
            names = ", ".join(f"'{target.names[i]}'" for i in chosen if i < len(target.names))
            # Where forward calls nothing that takes symmetry for granted, a forgotten transposition looks the same.
            meant = not OF_SYMMETRIC.isdisjoint(_called(target))
            return Elsewhere(other, f"the gradient is right where {names} is symmetric, and only there", meant)
    return None


def where_definite(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Elsewhere | None:
    """A positive definite matrix in the place of one that is square, or of a number where matrices were meant."""
    for i, value in enumerate(args):
        if not isinstance(value, Tensor) or not value.requires_grad or not (_is_square(value) or value.ndim == 0):
            continue
        other = tuple(_definite(a) if k == i else a for k, a in enumerate(args))
        if is_right(target, other, kwargs, seed):
            return Elsewhere(other, f"the gradient is right where '{_name(target, i)}' is a positive definite matrix")
    return None


def number_made_up(target: Target, args: tuple[Any, ...]) -> bool:
    """Whether a number among the inputs is our own: neither data nor the author's default."""
    numbers = [i for i, value in enumerate(args) if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return any(not _is_default(target, i, args[i]) for i in numbers)


def where_a_number_is_in_range(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """A single number beside the data that is only good beyond 1, or only if positive."""
    data = [a for a in args if isinstance(a, Tensor) and a.numel() > 1]
    for i, value in enumerate(args):
        if not data or not _is_number(value) or _is_default(target, i, value):
            continue
        others = [tuple(_filled(a, n) if k == i else a for k, a in enumerate(args)) for n in (1.5, 2.5)]
        if all(is_right(target, other, kwargs, seed) for other in others):
            return Elsewhere(others[0], f"the gradient is right where '{_name(target, i)}' is 1.5 or 2.5")
    return None


def where_numbers_lie_on_an_axis(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """Complex inputs of which forward reads one part alone: real numbers in a complex tensor, or imaginary ones."""
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.is_complex() and a.requires_grad]
    if not places:
        return None
    tape = recorded(target, Arguments.of(args, kwargs, target.names), seed)
    read = {call.name.lstrip(".") for call in tape.calls()}
    axes: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (("real", _real), ("imag", _imaginary))
    for part, project in axes:
        if part not in read:
            continue
        other = tuple(project(a.detach()).requires_grad_() if i in places else a for i, a in enumerate(args))
        if is_right(target, other, kwargs, seed, project):
            names = ", ".join(f"'{_name(target, i)}'" for i in places)
            word = "real" if part == "real" else "imaginary"
            return Elsewhere(other, f"the gradient is right where {names} is {word}, and forward reads that part")
    return None


def _real(x: Tensor) -> Tensor:
    if not x.is_complex():
        return x
    return torch.complex(x.real, torch.zeros_like(x.real))


def _imaginary(x: Tensor) -> Tensor:
    if not x.is_complex():
        return x
    return torch.complex(torch.zeros_like(x.imag), x.imag)


def where_implied_inputs_fit(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> Elsewhere | None:
    """An input that forward never reads has to fit the others, and a guessed one does not."""
    arguments = Arguments.of(args, kwargs, target.names)
    found = [leaf for leaf in arguments.leaves if leaf.position in implied(target, arguments, seed)]
    if not found or off_by_a_factor(target, args, kwargs, seed):
        return None
    place = next((i for i, a in enumerate(args) if a is found[0].tensor), None)
    for word, relative in _relatives(args, place) if place is not None else ():
        other = tuple(relative if i == place else a for i, a in enumerate(args))
        if is_right(target, other, kwargs, seed):
            return Elsewhere(other, f"the gradient is right where '{found[0].name}' is {word}")
    return Elsewhere(args, f"only backward reads '{found[0].name}', which has to fit the other inputs", proven=False)


def where_subclasses_fit(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Elsewhere | None:
    """A subclass with several tensors of numbers inside: a guess does not know how they have to fit each other."""
    for i, value in enumerate(args):
        inside = [p for p in pytree.tree_leaves(value) if isinstance(p, Tensor)] if isinstance(value, Wrapped) else []
        if sum(part.is_floating_point() or part.is_complex() for part in inside) > 1:
            return Elsewhere(args, f"what is in '{_name(target, i)}' had to be guessed", proven=False)
    return None


def where_objects_fit(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Elsewhere | None:
    """An object that had to be built: nobody knows which of its numbers belong together with the other inputs."""
    for i, value in enumerate(args):
        if was_built(value) and not off_by_a_factor(target, args, kwargs, seed):
            return Elsewhere(args, f"'{_name(target, i)}' had to be built with guessed numbers", proven=False)
    return None


def _relatives(args: tuple[Any, ...], place: int) -> Iterator[tuple[str, Tensor]]:
    """What an input is likely to be to another one: its equal, its transpose, its inverse permutation."""
    for i, other in enumerate(args):
        if i == place or not isinstance(other, Tensor):
            continue
        if other.is_floating_point() and other.ndim > 1 and other.shape == args[place].shape:
            yield f"the same as input {i + 1}", other.detach().clone().requires_grad_(args[place].requires_grad)
        if other.ndim > 1 and other.mT.shape == args[place].shape:
            yield f"the transpose of input {i + 1}", other.detach().mT.contiguous()
        if not other.is_floating_point() and other.ndim and other.shape == args[place].shape:
            yield f"the inverse of input {i + 1}", other.argsort(-1)


def off_by_a_factor(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> bool:
    """Whether a sign or a factor 2 is all that is wrong, with one gradient or with all: no input that does not fit does that."""
    places = [i for i, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad]
    groups = [{place} for place in places] + ([set(places)] if len(places) > 1 else [])
    for group in groups:
        for factor in (-1.0, 0.5, 2.0):
            if is_right(replace(target, call=_scaled(target, group, factor)), args, kwargs, seed):
                return True
    return False


def _scaled(target: Target, places: set[int], factor: float) -> Callable[..., Any]:
    """The subject with the gradients of these inputs multiplied on their way out."""

    def passed(value: Any) -> Any:
        value = value.clone()
        if value.requires_grad:
            value.register_hook(lambda grad: grad * factor)
        return value

    def call(*args: Any, **kwargs: Any) -> Any:
        return target.call(*(passed(a) if i in places else a for i, a in enumerate(args)), **kwargs)

    return call


def with_other_functions(target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Elsewhere | None:
    """Functions that had to be guessed: is the gradient right with others? One that nobody calls is not to blame."""
    places = [
        i
        for i, a in enumerate(args)
        if isinstance(a, torch.nn.Module) or (isinstance(a, Written) and _calls(target, args, kwargs, seed, i))
    ]
    meant = [list(others(args[i], _name(target, i))) for i in places]
    ran = 0
    for k in range(max(map(len, meant), default=0)):
        instead = {i: known[k] for i, known in zip(places, meant) if known}
        other = tuple(instead.get(i, a) for i, a in enumerate(args))
        judged = _judged(target, other, kwargs, seed, reached=True)
        if judged is True:
            first = min(instead)
            return Elsewhere(other, f"the gradient is right where '{_name(target, first)}' is {instead[first]}")
        ran += judged is False
    if not places or _leaves_no_doubt(target, args, kwargs, seed, places, ran):
        return None
    words = "the gradient is wrong for a guessed function among the inputs"
    return Elsewhere(args, words, proven=False)


def _leaves_no_doubt(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int, places: list[int], ran: int
) -> bool:
    """One function that forward calls, and it was wrong with others, too; or a sign or a factor 2 is all that is wrong."""
    if len(places) == 1 and ran > 1 and _calls(target, args, kwargs, seed, places[0], backward=False):
        return True
    return ran > 0 and off_by_a_factor(target, args, kwargs, seed)


def _calls(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int, place: int, *, backward: bool = True
) -> bool:
    """Whether forward, or backward, calls the function at `place`."""
    called: list[bool] = []
    inner = args[place]

    def called_instead(*values: Any, **named: Any) -> Any:
        called.append(True)
        return inner(*values, **named)

    given = tuple(called_instead if i == place else a for i, a in enumerate(args))
    with contextlib.suppress(Exception):  # user code, which ran before
        run = forward(target, Arguments.of(given, kwargs, target.names), seed=seed, plain=not backward)
        if backward and not called:
            run.gradients(run.normal(torch.Generator().manual_seed(seed)))
    return bool(called)


def _called(target: Target) -> set[str]:
    """The operations that forward calls."""
    model = model_of(target.function) if target.function is not None else None
    calls = model.forward.calls if model is not None and model.forward is not None else []
    return {call.op for call in calls if call.op is not None}


def is_right(
    target: Target,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    seed: int,
    project: Callable[[Tensor], Tensor] | None = None,
) -> bool:
    """Whether every gradient can be had there, and is right; with `project` along what it leaves open."""
    return _judged(target, args, kwargs, seed, project=project) is True


def _judged(
    target: Target,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    seed: int,
    *,
    reached: bool = False,
    project: Callable[[Tensor], Tensor] | None = None,
) -> bool | None:
    """Whether every gradient is right there (and none of them only zero, if `reached`); None where they cannot be had."""
    try:
        with stopped_after(_OPERATIONS):
            arguments = Arguments.of(args, kwargs, target.names)
            judgement = judge(target, arguments, Settings(seed=seed, project=project), until_wrong=True)
    except Exception:  # user code on values it was not asked about
        return None
    # Where nothing flows at all, there is nothing that could be wrong.
    idle = all(bool((pair.claimed == 0).all()) for pair in judgement.pairs)
    if not judgement.pairs or judgement.noisy or idle:
        return None
    flowing = {p.leaf.position for p in judgement.pairs if bool((p.claimed != 0).any())}
    if reached and any(p.leaf.position not in flowing for p in judgement.pairs):
        return None
    return not judgement.wrong


def _name(target: Target, position: int) -> str:
    return target.names[position] if position < len(target.names) else f"input {position + 1}"


def _is_default(target: Target, position: int, value: Any) -> bool:
    """Whether the author's own default is what was tried: that is in range."""
    forward = target.function.forward if target.function is not None else target.call
    try:
        parameter = inspect.signature(forward).parameters.get(_name(target, position))
    except (TypeError, ValueError):
        return False
    return parameter is not None and type(parameter.default) is type(value) and parameter.default == value


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.is_floating_point() and value.numel() == 1
    return isinstance(value, float)


def _filled(value: Any, number: float) -> Any:
    if isinstance(value, Tensor):
        return torch.full_like(value.detach(), number).requires_grad_(value.requires_grad)
    return number


def _definite(tensor: Tensor) -> Tensor:
    size = tensor.shape[-1] if tensor.ndim else 4
    shape = tensor.shape if tensor.ndim else torch.Size((size, size))
    drawn = torch.randn(shape, dtype=tensor.dtype, generator=torch.Generator().manual_seed(size))
    return (drawn @ drawn.mT + size * torch.eye(size, dtype=tensor.dtype)).requires_grad_()


def _is_square(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.ndim > 1 and tensor.shape[-1] == tensor.shape[-2] > 1


def _symmetric(tensor: Tensor) -> Tensor:
    half = tensor.detach()
    return ((half + half.mT) / 2).requires_grad_(tensor.requires_grad)

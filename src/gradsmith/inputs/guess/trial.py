"""Is a guess good enough to judge the gradient by? Every gradient that is returned must be finite and not zero."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.inputs.guess.clues import NOTHING
from gradsmith.inputs.guess.paste import value_code
from gradsmith.inputs.guess.proposals import DOMAINS, Frame, Proposal, made
from gradsmith.lab.explore.questions import looked_at
from gradsmith.lab.explore.watching import guard
from gradsmith.lab.measure.memory import whole
from gradsmith.lab.pieces import numbers_of
from gradsmith.lab.process import torch_says
from gradsmith.lab.run import Run, forward, recorded
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import Wrapped

NO_GRADIENT = "backward returns no gradient at all"


@dataclass
class TriedGuess:
    """One attempt that forward accepted. `rank`: 0 forward failed, 1 backward raised, 2 gradients bad, 3 good."""

    args: tuple[Any, ...] | None
    frame: Frame
    chosen: list[Proposal]
    dtype: torch.dtype
    rank: int = 0
    bad: list[int] = field(default_factory=list)  # inputs whose gradient is zero or not finite
    trouble: str = ""
    warning: str = ""  # forward ran, but says that its numbers are no good
    names: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return self.rank == 3

    def code(self, keywords: tuple[str, ...] = ()) -> str:
        """The values as a tuple to paste, or as a dict where some must be named."""
        if any(isinstance(a, nn.Parameter) for a in self.args or ()):
            return ""  # a module's own parameters beside it: no expression of a tuple names them
        words = [value_code(p, a) for p, a in zip(self.chosen, self.args or ())]
        if keywords:
            return f"dict({', '.join(f'{k}={w}' for k, w in zip([*self.names, *keywords], words))})"
        return f"({', '.join(words)}{',' if len(words) == 1 else ''})"


def outcome(
    target: Target,
    frame: Frame,
    chosen: Sequence[Proposal],
    dtype: torch.dtype,
    args: tuple[Any, ...],
    seed: int,
    keywords: tuple[str, ...] = (),
) -> TriedGuess:
    """Forward and backward on these values; inputs for which backward returns None no longer ask for a gradient."""
    result = TriedGuess(None, frame, list(chosen), dtype, names=target.names[: len(args) - len(keywords)])
    given, named = split(args, keywords)
    arguments = Arguments.of(given, named, target.names)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with guard():
                run = forward(target, arguments, seed=seed)
    except Exception as error:
        return replace(result, trouble=f"forward raises {type(error).__name__}")
    if not arguments.differentiable:
        return replace(result, trouble="no input can have a gradient")
    result.args = args
    result.warning = next((str(w.message) for w in said if torch_says.numbers_are_no_good(str(w.message))), "")
    if not run.differentiable:
        return replace(result, rank=1, trouble="no output carries a gradient")
    try:
        with guard():  # nobody has seen yet whether it frees memory
            grads = run.gradients(run.normal(torch.Generator().manual_seed(seed)))
    except Exception as error:
        trouble = f"backward raises {type(error).__name__}: {error}"
        if _is_container(error, args) or _of_another_kind(error, run, seed):
            return replace(result, args=None, trouble=trouble)
        return replace(result, rank=3 if _sums_it_all_up(trouble, run) else 1, trouble=trouble)
    judged = _judged(result, grads, arguments)
    if judged.good and any(whole(out) and out.isnan().any() for out in run.outputs if out.is_floating_point()):
        # Out of the domain of forward (acos of 2) there is nothing to compare a gradient with.
        return replace(judged, rank=2, trouble="forward gives nan")
    return judged


def _sums_it_all_up(trouble: str, run: Run) -> bool:
    """One number as the gradient of the only tensor, where forward goes through it number by number.

    On a single number that would be right, and nothing would ever be found.
    """
    tensors = [leaf.tensor for leaf in run.arguments.leaves]
    returned = torch_says.gradient_of_shape(trouble)
    one = returned is not None and all(size == 1 for size in returned[1])
    return one and len(tensors) == 1 and run.outputs[0].shape == tensors[0].shape


def _of_another_kind(error: Exception, run: Run, seed: int) -> bool:
    """Does backward use a given value as what it is not, and did forward let it pass without looking at it?

    None is what an author may forget in backward, so that it speaks against nobody but the author; unless it was our own
    idea, for an input that has to be given.
    """
    given = dict(enumerate(run.arguments.flat)) | run.passed
    if isinstance(error, AttributeError):
        obj = getattr(error, "obj", NOTHING)
        accused = [i for i, v in given.items() if v is obj and (v is not None or not _may_be_none(run.target, i))]
    else:
        called = torch_says.is_not_callable(error)
        accused = [i for i, v in given.items() if called and v is not None and type(v).__name__ == called]
    return bool(accused) and not looked_at(recorded(run.target, run.arguments, seed)).issuperset(accused)


def _is_container(error: Exception, args: tuple[Any, ...]) -> bool:
    """Whether backward wanted something else where a list, a tuple or a table was guessed."""
    obj = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    return isinstance(obj, (list, tuple, dict)) and any(type(a) is type(obj) and repr(a) == repr(obj) for a in args)


def _may_be_none(target: Target, position: int) -> bool:
    """Whether a signature lets an input be None: by its default, or by its annotation."""
    parameters = inspect.signature(target.function.forward).parameters if target.function is not None else {}
    name = target.names[position] if position < len(target.names) else ""
    parameter = parameters.get(name)
    if parameter is None:
        return True
    return parameter.default is None or any(word in str(parameter.annotation) for word in ("None", "Optional"))


def split(args: tuple[Any, ...], keywords: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) where the last values are passed by name."""
    count = len(args) - len(keywords)
    return args[:count], dict(zip(keywords, args[count:]))


def _judged(result: TriedGuess, grads: dict[int, Tensor | None], arguments: Arguments) -> TriedGuess:
    assert result.args is not None
    holders = {id(t): i for i, a in enumerate(result.args) for t in _leaves(a)}
    by_input: dict[int, list[Tensor | None]] = {}
    for leaf in arguments.differentiable:
        by_input.setdefault(holders[id(leaf.tensor)], []).append(grads[leaf.position])
    silent = [i for i, found in by_input.items() if all(g is None for g in found)]
    if len(silent) == len(by_input):
        return replace(result, rank=1, trouble=NO_GRADIENT)
    bad = [i for i, found in by_input.items() if i not in silent and not all(_judgeable(g) for g in found)]
    args = tuple(_without_gradient(a) if i in silent else a for i, a in enumerate(result.args))
    chosen = [replace(p, gradient=False) if i in silent else p for i, p in enumerate(result.chosen)]
    if bad:
        return replace(result, args=args, chosen=chosen, rank=2, bad=bad, trouble="a gradient is zero or not finite")
    return replace(result, args=args, chosen=chosen, rank=3)


def improve(target: Target, tried: TriedGuess, seed: int, keywords: tuple[str, ...] = ()) -> TriedGuess:
    """The same shapes with other values, for the inputs whose gradients are bad; for all where forward failed."""
    best = tried
    tensors = [i for i, p in enumerate(tried.chosen) if p.kind == "floating"]
    culprits = [i for i in tensors if i in tried.bad] or tensors
    for domain in DOMAINS:
        for group in (culprits, tensors):
            chosen = [p.drawn_from(domain) if i in group else p for i, p in enumerate(tried.chosen)]
            if chosen == tried.chosen:
                continue
            generator = torch.Generator().manual_seed(seed + 1)
            args = tuple(made(p, tried.frame, tried.dtype, generator) for p in chosen)
            attempt = outcome(target, tried.frame, chosen, tried.dtype, args, seed, keywords)
            if attempt.rank > best.rank or (attempt.rank == best.rank and len(attempt.bad) < len(best.bad)):
                best = attempt
            if best.good:
                return best
            if group == tensors:
                break
    return best


def improved_for_backward(
    target: Target, tried: TriedGuess, frames: Sequence[Frame], seed: int, keywords: tuple[str, ...] = ()
) -> TriedGuess:
    """The same choices where forward ran and backward did not answer: as complex numbers, other values, other shapes."""
    if torch_says.speaks_of_complex(tried.trouble):
        chosen = [replace(p, kind="complex") if p.kind == "floating" and p.gradient else p for p in tried.chosen]
        return _again(target, tried, tried.frame, chosen, seed, keywords)
    if tried.trouble == NO_GRADIENT:
        return improve(target, tried, seed, keywords)
    if (count := torch_says.gradients_returned(tried.trouble)) is not None:
        return _without_defaults(target, tried, count, seed) if not keywords else tried
    if not tried.trouble.startswith("backward raises"):
        return tried
    best = tried
    for frame in frames:
        if frame != tried.frame and not best.good:
            best = _again(target, best, frame, tried.chosen, seed, keywords)
    return best


def _without_defaults(target: Target, tried: TriedGuess, count: int, seed: int) -> TriedGuess:
    """With the first inputs only, if all others have defaults: their author never passes them."""
    parameters = list(inspect.signature(target.function.forward).parameters.values()) if target.function else []
    left = len(tried.args or ()) - count
    if left <= 0 or not all(p.default is not p.empty for p in parameters[-left:]):
        return tried
    assert tried.args is not None
    fewer = outcome(target, tried.frame, tried.chosen[:count], tried.dtype, tried.args[:count], seed)
    return fewer if fewer.rank > tried.rank else tried


def _again(
    target: Target, best: TriedGuess, frame: Frame, chosen: list[Proposal], seed: int, keywords: tuple[str, ...]
) -> TriedGuess:
    """One more attempt; the better of the two."""
    generator = torch.Generator().manual_seed(seed)
    args = tuple(made(p, frame, best.dtype, generator) for p in chosen)
    if any(a is NotImplemented for a in args):
        return best
    attempt = outcome(target, frame, chosen, best.dtype, args, seed, keywords)
    return attempt if attempt.rank > best.rank else best


def without_warning(target: Target, tried: TriedGuess, seed: int, keywords: tuple[str, ...] = ()) -> TriedGuess:
    """The same shapes with one input of a kind that forward has no complaints about; the same where there is none."""
    for domain in ("definite", "negative definite", "positive", "unit"):
        for i, proposal in enumerate(tried.chosen):
            if proposal.kind != "floating" or proposal.domain == domain:
                continue
            chosen = [p.drawn_from(domain) if k == i else p for k, p in enumerate(tried.chosen)]
            generator = torch.Generator().manual_seed(seed + 1)
            args = tuple(made(p, tried.frame, tried.dtype, generator) for p in chosen)
            attempt = outcome(target, tried.frame, chosen, tried.dtype, args, seed, keywords)
            if attempt.good and not attempt.warning:
                return attempt
    return tried


def alike(target: Target, tried: TriedGuess, seed: int, keywords: tuple[str, ...] = ()) -> TriedGuess:
    """With every input of the subclass that one had to be of, if that works: mixtures are rarely meant."""
    known = next((p for p in tried.chosen if p.kind == "wrapped"), None)
    plain = [p for p in tried.chosen if p.kind == "floating" and p.gradient]
    if known is None or not plain:
        return tried
    chosen = [replace(known, gradient=True) if p in plain else p for p in tried.chosen]
    generator = torch.Generator().manual_seed(seed)
    args = tuple(made(p, tried.frame, tried.dtype, generator) for p in chosen)
    attempt = outcome(target, tried.frame, chosen, tried.dtype, args, seed, keywords)
    return attempt if attempt.good else tried


def _judgeable(grad: Tensor | None) -> bool:
    if grad is None:
        return True
    numbers = numbers_of(grad)
    return bool(torch.isfinite(numbers).all()) and bool(numbers.abs().gt(0).any())


def _leaves(value: Any) -> list[Tensor]:
    return [v for v in pytree.tree_leaves(value) if isinstance(v, Tensor)]


def _without_gradient(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, Wrapped):
        return replace(value, parts=tuple(map(_without_gradient, value.parts)))
    if isinstance(value, dict):
        return {key: _without_gradient(v) for key, v in value.items()}
    return type(value)(_without_gradient(v) for v in value) if isinstance(value, (list, tuple)) else value

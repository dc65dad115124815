"""The custom Functions and operators that run inside a subject, and what they are really called with.

A lambda, a helper, a layer or a model has no backward of its own: what can be wrong in it are the Functions that it calls.
One run of forward and backward is enough to meet them. Every `forward` is wrapped for that run, so that `f = Fn.apply`, taken
earlier, is met, too. Of our own Functions only declared surrogates are met (`gs.ops.grad_reverse`): they are tested here, but
what runs them is meant to have a gradient that is not its derivative. Only calls that autograd differentiates count: under no_grad, and in the forward of another Function, no
gradient is asked of them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionMeta
from torch.utils import _pytree as pytree

from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.eager import uncompiled
from gradsmith.lab.process.state import preserved, seed_all
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.binding import Example
from gradsmith.lab.subject.copies import copied
from gradsmith.lab.subject.declarations import Declaration, declaration_of
from gradsmith.lab.subject.defined import subclasses
from gradsmith.lab.subject.holders import modules_held
from gradsmith.lab.subject.signature import signature
from gradsmith.lab.subject.strides import cloned
from gradsmith.lab.subject.target import Target, has_setup_context, resolve

_NOT_USERS = ("torch.", "gradsmith.")
Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Inside:
    """A custom Function or operator that ran in a subject: one example for each distinct signature of its calls."""

    subject: Any
    examples: dict[Hashable, Example] = field(default_factory=dict)
    calls: int = 0  # that autograd differentiates
    unkept: int = (
        0  # of them, those whose values do not exist: under a transform of torch.func, or in a tensor subclass
    )


def has_inside(target: Target) -> bool:
    """Whether the subject is made of other code, and has no gradient of its own."""
    return target.function is None and target.kind != "custom_op"


def ran_inside(target: Target, args: tuple[Any, ...], kwargs: Mapping[str, Any], seed: int) -> list[Inside]:
    """What ran in one forward and one backward on copies of these inputs, in order of the first calls.

    Where the subject raises, what ran until then. Nothing of the user's is left changed.
    """
    watch = _Watch()
    arguments = Arguments.of(args, kwargs, target.names)
    owners = [target.module, *modules_held(target.original)]
    with preserved(*args, *kwargs.values(), *owners), uncompiled(), watch.watching(), contextlib.suppress(Exception):
        given = copied(arguments)
        seed_all(seed)
        outputs = [o for o in flat_outputs(target.call(*given.args, **given.kwargs))[0] if o.requires_grad]
        parameters = [p for owner in owners if owner is not None for p in owner.parameters() if p.requires_grad]
        wanted = [*dict.fromkeys(given.leaves.values()), *parameters]
        gradients(outputs, wanted, [torch.ones_like(o) for o in outputs])
    return list(watch.found.values())


class _Watch:
    """Wrappers around every custom Function and operator, for the time of one run."""

    def __init__(self) -> None:
        self.found: dict[Hashable, Inside] = {}
        self.begun: list[tuple[type, Call | None]] = []  # forwards without ctx: setup_context will say whose they are
        self.undo: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        try:
            # All methods first: what a class inherits must not be wrapped twice.
            plans = [self._plan(cls) for cls in subclasses(torch.autograd.Function) if _is_met(cls)]
            for put in [put for plan in plans for put in plan]:
                put()
            self._later_classes()
            for op in torch_says.custom_ops():
                self._watch_op(op)
            yield
        finally:
            while self.undo:
                self.undo.pop()()

    def _plan(self, cls: type) -> list[Callable[[], None]]:
        if not has_setup_context(cls):
            return [functools.partial(self._put, cls, "forward", self._with_ctx(cls, cls.forward))]  # type: ignore[attr-defined]
        forward, setup = cls.forward, cls.setup_context  # type: ignore[attr-defined]
        return [
            functools.partial(self._put, cls, "forward", self._without_ctx(cls, forward)),
            functools.partial(self._put, cls, "setup_context", self._setup(cls, setup)),
        ]

    def _put(self, cls: type, name: str, wrapper: Callable[..., Any]) -> None:
        own = cls.__dict__.get(name)
        setattr(cls, name, staticmethod(wrapper))
        self.undo.append(functools.partial(setattr, cls, name, own) if own is not None else lambda: delattr(cls, name))

    def _later_classes(self) -> None:
        """Classes that the subject defines while it runs."""
        made = FunctionMeta.__init__

        def init(cls: Any, name: str, bases: Any, attributes: Any) -> None:
            made(cls, name, bases, attributes)
            if _is_met(cls):
                for put in self._plan(cls):
                    put()

        FunctionMeta.__init__ = init  # type: ignore[method-assign]
        self.undo.append(lambda: setattr(FunctionMeta, "__init__", made))

    def _with_ctx(self, cls: type, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            if torch_says.forward_class(type(ctx)) is cls and _counts(ctx, args):
                self._note(cls, _kept(args, {}))
            return original(ctx, *args, **kwargs)

        return forward

    def _without_ctx(self, cls: type, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            given = _kept(args, {})  # before forward, which may write into them
            try:
                result = original(*args, **kwargs)
            except Exception:
                self._note(cls, given)
                raise
            self.begun.append((cls, given))
            return result

        return forward

    def _setup(self, cls: type, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def setup_context(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            if torch_says.forward_class(type(ctx)) is cls and self.begun:
                given = next((call for owner, call in reversed(self.begun) if owner is cls), None)
                self.begun.clear()
                if _counts(ctx, given[0] if given is not None else ()):
                    self._note(cls, given)
            return original(ctx, *args, **kwargs)

        return setup_context

    def _watch_op(self, op: Any) -> None:
        original = op._setup_context_fn

        def setup_context(**given: Any) -> Any:
            self._note(op, _kept(given["inputs"], given.get("keyword_only_inputs") or {}))
            return original(**given) if original is not None else None

        op._setup_context_fn = setup_context
        self.undo.append(functools.partial(setattr, op, "_setup_context_fn", original))

    def _note(self, subject: Any, call: Call | None) -> None:
        entry = self.found.setdefault(identity(subject), Inside(subject))
        entry.calls += 1
        if call is None:
            entry.unkept += 1
            return
        args, kwargs = call
        entry.examples.setdefault(_told_apart((*args, *kwargs.values())), (args, kwargs))


def _kept(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
    """Copies of the tensors, which lie in memory as they do; None where one has no values that could be copied.

    A parameter stays itself: an argument that holds it (its module) must be seen to hold it.
    """
    leaves = [v for v in pytree.tree_leaves([args, kwargs]) if isinstance(v, Tensor)]
    if not all(_has_values(tensor) for tensor in leaves):
        return None
    copies: dict[int, Tensor] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, Tensor) or isinstance(value, nn.Parameter):
            return value
        if id(value) not in copies:
            copies[id(value)] = cloned(value.detach()).requires_grad_(value.requires_grad)
        return copies[id(value)]

    with torch.no_grad():
        kept: Call = pytree.tree_map(copy, (tuple(args), dict(kwargs)))
    return kept


def _counts(ctx: Any, args: tuple[Any, ...]) -> bool:
    """Whether a gradient is asked of a call: by autograd, or by whoever hides the tensors that need one in a container."""
    if torch_says.is_differentiated(ctx):
        return True
    direct = any(isinstance(value, Tensor) and value.requires_grad for value in args)
    return not direct and any(isinstance(v, Tensor) and v.requires_grad for v in pytree.tree_leaves(list(args)))


def _has_values(tensor: Tensor) -> bool:
    return type(tensor) in (Tensor, nn.Parameter) and not torch_says.under_a_transform(tensor)


def _told_apart(values: tuple[Any, ...]) -> Hashable:
    try:
        key = signature(values)
        hash(key)
    except (TypeError, RuntimeError):  # an argument without hash
        return "?"
    return key


def identity(subject: Any) -> Hashable:
    """The same for a class that is defined anew at every call."""
    if not isinstance(subject, type):
        return id(subject)
    forward = inspect.unwrap(subject.forward)  # type: ignore[attr-defined]
    return subject.__module__, subject.__qualname__, getattr(forward, "__code__", forward)


def is_users(cls: Any) -> bool:
    """Whether this is neither PyTorch's nor ours."""
    return not f"{cls.__module__}.".startswith(_NOT_USERS)


@functools.cache
def _is_met(cls: type) -> bool:
    if is_users(cls):
        return True
    return cls.__module__.startswith("gradsmith.") and declaration_of(resolve(cls)) != Declaration()

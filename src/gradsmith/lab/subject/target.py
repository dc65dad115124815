"""What is examined: a Function class, its `.apply`, a custom op, an nn.Module, or any callable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import _SingleLevelFunction

from gradsmith.findings import GradsmithError
from gradsmith.lab.process import torch_says
from gradsmith.lab.subject.arguments import parameter_names
from gradsmith.source.loaded import place_of

Kind = Literal["function", "custom_op", "module", "callable"]


@dataclass(frozen=True)
class Target:
    """The subject as something to call, with what a message needs to name it."""

    name: str
    call: Callable[..., Any]
    kind: Kind
    names: tuple[str, ...]
    function: type[torch.autograd.Function] | None = None
    module: nn.Module | None = None
    path: str | None = None
    line: int | None = None
    original: Any = field(default=None, repr=False)


def resolve(subject: Any) -> Target:
    """Recognise what the user passed to `gs.check`."""
    cls = function_class(subject)
    if cls is not None:
        path, line = where(cls)
        names = parameter_names(cls.forward, skip_first=not has_setup_context(cls))
        return Target(short_name(cls), cls.apply, "function", tuple(names), cls, None, path, line, subject)
    if isinstance(subject, nn.Module):
        path, line = where(type(subject))
        names = parameter_names(subject.forward, skip_first=False)
        return Target(type(subject).__name__, subject, "module", tuple(names), None, subject, path, line, subject)
    if not callable(subject):
        raise GradsmithError(
            f"cannot check {subject!r}: pass a torch.autograd.Function class, its .apply, a custom op, "
            "an nn.Module or another callable"
        )
    names = parameter_names(_plain(subject), skip_first=False)
    path, line = where(_plain(subject))
    kind: Kind = "custom_op" if is_custom_op(subject) else "callable"
    return Target(_callable_name(subject), subject, kind, tuple(names), None, None, path, line, subject)


def function_class(subject: Any) -> type[torch.autograd.Function] | None:
    """The Function class behind `Fn`, `Fn.apply` or `functools.partial(Fn.apply)` without arguments."""
    if isinstance(subject, functools.partial) and not subject.args and not subject.keywords:
        subject = subject.func
    if getattr(subject, "__name__", None) == "apply":
        subject = getattr(subject, "__self__", subject)
    if isinstance(subject, type) and issubclass(subject, torch.autograd.Function):
        return subject
    return None


def has_setup_context(cls: type) -> bool:
    """Whether forward takes no ctx because the class brings its own setup_context."""
    return getattr(cls, "setup_context", None) is not _SingleLevelFunction.setup_context


def backward_of(cls: type) -> Callable[..., Any]:
    """`backward`, or `vjp`, its other spelling."""
    plain = _SingleLevelFunction.backward
    return cls.vjp if getattr(cls, "backward", plain) is plain else cls.backward  # type: ignore[attr-defined,no-any-return]


def is_custom_op(subject: Any) -> bool:
    return type(subject).__name__ in {"CustomOpDef", "OpOverload", "OpOverloadPacket"}


def functions_behind(outputs: Sequence[Tensor]) -> list[type[torch.autograd.Function]]:
    """The custom Function classes in the graph behind `outputs`, in forward order."""
    stack: list[Any] = [out.grad_fn for out in outputs]
    seen: set[Any] = set()
    nodes: list[Any] = []
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if torch_says.forward_class(node) is not None:
            nodes.append(node)
        stack.extend(parent for parent, _ in node.next_functions)
    ordered = sorted(nodes, key=lambda n: int(n._sequence_nr()))
    classes: dict[type[torch.autograd.Function], None] = {}
    for node in ordered:
        cls = torch_says.forward_class(node)
        # custom_op wraps its backward in a generated Function of torch's own; that one is not the user's.
        if cls is not None and not cls.__module__.startswith("torch."):
            classes[cls] = None
    return list(classes)


def where_comments_go(target: Target) -> str:
    """The one phrase for the place of a comment that declares something about a subject; it may also stand above or inside."""
    return f"at the end of the {'class' if target.function is not None or target.module is not None else 'def'} line"


def short_name(obj: Any) -> str:
    return str(getattr(obj, "__qualname__", getattr(obj, "__name__", type(obj).__name__))).rpartition("<locals>.")[2]


def where(obj: Any) -> tuple[str | None, int | None]:
    """File and first line of a class or function; its methods are asked where nothing else is known."""
    for candidate in (obj, getattr(obj, "forward", None), getattr(obj, "backward", None)):
        path, line = place_of(candidate)
        if path is not None:
            return path, line
    return None, None


def _plain(subject: Any) -> Any:
    return getattr(subject, "_init_fn", subject)


def _callable_name(subject: Any) -> str:
    if is_custom_op(subject):
        return str(getattr(subject, "_qualname", subject))
    name = short_name(subject)
    return "the lambda" if name == "<lambda>" else name

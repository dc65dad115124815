"""Declared inputs: `@example_inputs(...)`, a `gradsmith_inputs` mapping in the module, or `--inputs "..."`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

from gradsmith.findings import GradsmithError
from gradsmith.lab.subject.declaration import declarations

Builder = Callable[[], Any]
T = TypeVar("T")
ATTRIBUTE = "__gradsmith_inputs__"
ASSUMED = "__gradsmith_assumptions__"


def example_inputs(*builders: Builder, assumes: str | Sequence[str] = ()) -> Callable[[T], T]:
    """Declare what a Function, module or callable may be called with; several builders are several examples.

    `assumes` accepts what a report says the gradient assumes ("matrix is symmetric"): it always holds for such inputs.

    >>> import torch
    >>> @example_inputs(lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),))
    ... class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         return 2 * grad_output
    """

    sentences = (assumes,) if isinstance(assumes, str) else assumes
    if not isinstance(sentences, (list, tuple)) or not all(isinstance(sentence, str) for sentence in sentences):
        raise GradsmithError(
            f'assumes={assumes!r} is no sentence; write assumes="matrix is symmetric", or a list of such'
        )

    def attach(subject: T) -> T:
        setattr(subject, ATTRIBUTE, list(builders))
        setattr(subject, ASSUMED, tuple(sentences))
        return subject

    return attach


def assumed(subject: Any) -> tuple[str, ...]:
    """What `@example_inputs(..., assumes=...)` at this very class or function says always holds."""
    found: tuple[str, ...] = vars(subject).get(ASSUMED, ()) if hasattr(subject, "__dict__") else ()
    return found


def declared(subject: Any, module: ModuleType | None, name: str) -> list[Builder]:
    """The builders a user declared for this subject, the decorator first."""
    own = vars(subject).get(ATTRIBUTE) if hasattr(subject, "__dict__") else None
    if own:
        return list(own)
    mapping = declarations(module)
    if not mapping:
        return []
    # A custom op is named library::op; in its file people write the name of the function that it decorates.
    spelled = [key for key, value in vars(module).items() if value is subject] if subject is not None else []
    names = (name, name.rpartition(".")[2], name.rpartition("::")[2], *spelled)
    entry = next((mapping[n] for n in names if n in mapping), None)
    if entry is None:
        return []
    entries = entry if isinstance(entry, list) else [entry]
    return [e if callable(e) else _constant(e) for e in entries]


def from_text(text: str, module: ModuleType | None) -> Builder:
    """`--inputs "randn(4, 3), Linear(3, 3)"`: evaluated in the user's module, with torch's names within reach."""
    import torch

    names: dict[str, Any] = {**vars(torch), "torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    names.update(vars(module) if module is not None else {})

    def build() -> tuple[Any, ...]:
        try:
            values = eval(f"({text},)", names)  # the user's own words, asked for on the command line
        except SyntaxError as error:
            raise GradsmithError(f"--inputs {text!r} is not Python: {error.msg}") from None
        return tuple(_trainable(v) for v in values)

    return build


def built(builder: Builder) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) from a builder: a tuple of arguments, a dict of keywords, or a single value."""
    made = builder()
    if isinstance(made, dict):
        return (), made
    return (tuple(made), {}) if isinstance(made, (tuple, list)) else ((made,), {})


def _constant(value: Any) -> Builder:
    return lambda: value


def _trainable(value: Any) -> Any:
    """On the command line nobody writes requires_grad: floating tensors get it."""
    import torch

    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.is_leaf:
        return value.requires_grad_()
    return value

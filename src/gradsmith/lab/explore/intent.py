"""Signs that a backward is meant to differ from the derivative: a step or noise on the way, a test on grad_output.

They are structure. What the author says in words (`said`) changes what we advise, never what we conclude.
"""

from __future__ import annotations

import ast
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.explore.questions import steps
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.measure.oracle import OwnForward, plain_forward
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.target import Target
from gradsmith.source import Method, model_of, prose
from gradsmith.source import knowledge as know
from gradsmith.source.behind import made_of
from gradsmith.source.lexicon import surrogate_words

_ORDERED = know.COMPARISONS - {"eq", "ne", "not_equal"}


def said(target: Target) -> str:
    """The words in which the author of a Function speaks of a surrogate: in its name, its comments, its docstring."""
    return surrogate_words(_text(target)) or surrogate_words(target.name)


def how_to_declare(target: Target) -> str:
    """A sentence for an author who speaks of a surrogate: words ask for a sentence, a declaration for a verdict."""
    words = said(target)
    if not words:
        return ""
    return f" The source says `{words}`: if that is on purpose, write `# gradsmith: surrogate[custom]` at the end of the class line."


def _text(target: Target) -> str:
    model = model_of(target.function) if target.function is not None else None
    return f"{target.name}\n{prose.words_about(model)}" if model is not None else ""


def tests_grad_output(target: Target) -> bool:
    """Whether backward asks how large a gradient is, or of which sign: `(x >= bound) | (grad_output < 0)`.

    A clamp of it asks nothing: that is a gradient of another size, and has a rule of its own.
    """
    model = model_of(target.function) if target.function is not None else None
    if model is None or model.backward is None:
        return False
    backward, grads = model.backward, {param.name for param in model.grad_outputs}

    def is_grad(node: ast.AST) -> bool:
        made = made_of(backward, [node], into=lambda part: _handed_on(backward, part))
        return any(isinstance(part, ast.Name) and part.id in grads for part in made)

    return any(is_grad(side) for node in backward.nodes for side in _weighed(backward, node))


def _weighed(method: Method, node: ast.AST) -> list[ast.expr]:
    """What an expression compares by size."""
    if isinstance(node, ast.Compare):
        ordered = all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        return [node.left, *node.comparators] if ordered else []
    op = method.op(node) if isinstance(node, ast.Call) else None
    return _operands(node) if isinstance(node, ast.Call) and op in _ORDERED else []


def _handed_on(method: Method, node: ast.AST) -> list[ast.AST | None]:
    """What an expression is with the same values: a name's value, a copy or a view of it."""
    if isinstance(node, ast.Name):
        return [binding.value for binding in method.definitions(node)]
    if isinstance(node, ast.Call) and method.op(node) in know.COPIES | know.VIEWS | know.MAYBE_SAME:
        return [*_operands(node)[:2]]
    return []


def _operands(call: ast.Call) -> list[ast.expr]:
    """The tensor that a method is called on, and what it is given."""
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*receiver, *call.args]


def holds_parts(target: Target) -> bool:
    """Whether forward says that some of what it computes is to count as constant."""
    model = model_of(target.function) if target.function is not None else None
    return (model is not None and model.forward is not None) and any(
        isinstance(node, ast.Attribute) and node.attr in ("no_grad", "detach") for node in ast.walk(model.forward.node)
    )


def passes_a_step(tape: OperationTape, position: int) -> bool:
    """Whether forward rounds, or takes the sign of, what it computes from this input."""
    return steps(tape, position)


def without_steps(target: Target, arguments: Arguments, seed: int) -> OwnForward | None:
    """The user's own forward under autograd with every step replaced by the identity, every normal draw by its mean.

    None where forward has neither, or cannot be run so.
    """
    function = plain_forward(target)
    smoothing = _Smoothing()
    if function is None:
        return None
    try:
        with OperationTape(calls_only=True, keep=False, instead=smoothing):
            smooth = OwnForward(function, arguments, seed)
    except Exception:  # the user's code on values that its own operations would not have given it
        return None
    return smooth if smoothing.met else None


class _Smoothing:
    """What a call hands on: for a step what it was given, for a normal draw its mean."""

    def __init__(self) -> None:
        self.met = False

    def __call__(self, name: str, args: Any, kwargs: Any, result: Any) -> Any:
        first = args[0] if args and isinstance(args[0], Tensor) else None
        if name in know.NORMAL_DRAWS and name != "normal":
            self.met = True
            return torch.zeros_like(result)
        if name == "normal" and isinstance(result, Tensor):
            self.met = True
            mean = args[1] if result is first and len(args) > 1 else args[0] if result is not first else 0.0
            mean = kwargs.get("mean", mean)
            return result.fill_(mean) if first is result else torch.zeros_like(result) + mean
        whole = isinstance(result, Tensor) and not result.is_floating_point() and result.dtype != torch.bool
        step = name in know.STEPS_ON_THE_WAY or (name in know.CASTS and whole)
        if step and first is not None and first.is_floating_point() and result.shape == first.shape:
            self.met = True
            return first
        return result

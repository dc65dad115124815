"""Signs that a backward is meant to differ from the derivative: a step on the way, the author's words, a test on grad_output."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gradsmith.lab.arguments import Arguments
from gradsmith.lab.run import forward
from gradsmith.lab.target import Target
from gradsmith.source import model_of, prose

# What they return does not move with what they are given: a derivative through them is zero, and nobody trains with that.
_STEPS = frozenset(
    {
        *("round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "floor_divide"),
        *("bernoulli", "multinomial", "argmax", "argmin", "one_hot"),
        *("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"),
    }
)
_CASTS = frozenset({"to", "type", "int", "long", "short", "char", "byte", "type_as"})
_SAID = re.compile(
    r"straight[\s_-]*through|surrogate|natural[\s_-]*gradient|pseudo[\s_-]*(?:gradient|derivative)|"
    r"grad(?:ient)?s?[\s_-]*(?:revers|scal|clip)\w*|rev(?:erse[sd]?|ersing)?[\s_-]*(?:the[\s_-]*)?grad\w*|"
    r"approximat\w* (?:of )?(?:the )?(?:gradient|derivative)|(?:gradient|derivative)s? (?:is |are )?approximat|"
    r"(?:replac\w+|instead of|in place of)\s+(?:the\s+)?(?:true|correct|real|actual)\s+(?:gradient|derivative)",
    re.IGNORECASE,
)
_NOISE = re.compile(r"nois[ey]", re.IGNORECASE)
_ABBREVIATED = re.compile(r"(?<![A-Z])STE(?![a-z])")
_NAMED = re.compile(r"(?:^|_)ste(?:_|$)")
# Names of steps that are written as a choice between constants.
_STEP_NAMED = re.compile(r"binar|ternar|quanti|(?<![a-z])sign(?![a-z])|spik|heaviside|step", re.IGNORECASE)


def said(target: Target) -> str:
    """The words in which the author of a Function speaks of a surrogate: in its name, its comments, its docstring."""
    text = _text(target)
    match = _SAID.search(text) or _ABBREVIATED.search(text) or _NAMED.search(target.name)
    return match.group() if match else ""


def adds_noise(target: Target, arguments: Arguments, seed: int) -> bool:
    """Whether the author speaks of noise, and forward draws it: who models errors of a device does not train them away."""
    if not _NOISE.search(_text(target)):
        return False
    try:
        one, other = (forward(target, arguments, seed=s).outputs for s in (seed, seed + 1))
    except Exception:  # what raises under another seed depends on chance as well
        return True
    return any(not torch.equal(a.detach(), b.detach()) for a, b in zip(one, other))


def _text(target: Target) -> str:
    model = model_of(target.function) if target.function is not None else None
    return f"{target.name}\n{prose.words_about(model)}" if model is not None else ""


def tests_grad_output(target: Target) -> bool:
    """Whether backward asks how large a gradient is, or of which sign: `(x >= bound) | (grad_output < 0)`."""
    model = model_of(target.function) if target.function is not None else None
    if model is None or model.backward is None:
        return False
    grads = {param.name for param in model.grad_outputs}
    return any(
        isinstance(node, ast.Compare)
        and all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        and any(isinstance(side, ast.Name) and side.id in grads for side in (node.left, *node.comparators))
        for node in model.backward.nodes
    )


def holds_parts(target: Target) -> bool:
    """Whether forward says that some of what it computes is to count as constant."""
    model = model_of(target.function) if target.function is not None else None
    return (model is not None and model.forward is not None) and any(
        isinstance(node, ast.Attribute) and node.attr in ("no_grad", "detach") for node in ast.walk(model.forward.node)
    )


def passes_a_step(target: Target, arguments: Arguments, position: int, seed: int) -> bool:
    """Whether forward rounds, or takes the sign of, what it computes from this input."""
    start = next(leaf.tensor for leaf in arguments.leaves if leaf.position == position)
    watch = _Steps(start)
    try:
        with torch.no_grad(), watch:
            forward(target, arguments, seed=seed, plain=True)
    except Exception:  # what ran before still counts
        pass
    return watch.found or (watch.chooses and bool(_STEP_NAMED.search(target.name)))


class _Steps(TorchFunctionMode):
    """Follows one tensor through torch's functions until it meets a step."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.found = False
        self.chooses = False  # between values that do not depend on it, by a comparison that does
        self.alive = {id(start): start}  # ids are only good while the tensors live

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor) and id(t) in self.alive]
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "").rstrip("_")
        if given and not name.endswith("_like"):
            self.chooses |= name == "where" and [id(t) for t in given] == [id(args[0])]
            made = [t for t in pytree.tree_leaves(result) if isinstance(t, Tensor)]
            whole = any(not t.is_floating_point() and not t.is_complex() and t.dtype != torch.bool for t in made)
            self.found |= name in _STEPS or (name in _CASTS and whole)
            self.alive.update({id(t): t for t in made})
        return result

"""A formula such as `x * sigmoid(beta * x)` as a function of tensors, with inputs on which it runs."""

from __future__ import annotations

import dis
import itertools
import keyword
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from gradsmith.findings import GradsmithError
from gradsmith.source.expressions import names_called

_MODULES = {"torch": torch, "F": F, "math": math}
# Domains that a formula may ask for, the widest first, as code that draws from them.
_DRAWS = (
    "torch.randn({sizes}{dtype})",
    "torch.rand({sizes}{dtype}) * 0.8 + 0.1",
    "torch.rand({sizes}{dtype}) + 1.2",
)
_SIZES = ("3, 4", "4, 3", "4", "3")
_MOST_NAMES = 4  # of which all sizes are tried


@dataclass(frozen=True)
class Formula:
    """The function, the names of its tensors, and code that makes inputs for it."""

    function: Callable[..., Any]
    names: tuple[str, ...]
    inputs: str

    def arguments(self) -> tuple[Any, ...]:
        found = eval(self.inputs, dict(_MODULES))  # our own text
        return tuple(found)


def formula(name: str, text: str) -> Formula:
    """Read a formula. Names that torch, F and math do not know are its tensors, in the order they appear.

    >>> formula("swish", "x * sigmoid(beta * x)").names
    ('x', 'beta')
    """
    named(name)
    try:
        code = compile(text.strip(), "<formula>", "eval")
    except (SyntaxError, ValueError) as error:
        raise GradsmithError(f"the formula {text!r} is not a Python expression: {error}") from None
    used = list(dict.fromkeys(i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_NAME", "LOAD_GLOBAL")))
    scope = dict(_MODULES)
    names = []
    for word in used:
        found = next((getattr(m, word) for m in (torch, F, math) if callable(getattr(m, word, None))), None)
        if word in ("pi", "e"):
            scope[word] = getattr(math, word)
        elif found is not None and word not in ("t", "e"):
            scope[word] = _of_either(found, getattr(math, word, None))
        elif word not in scope:
            names.append(word)
    if unknown := [word for word in names if word in names_called(text)]:
        raise GradsmithError(f"the formula calls {unknown[0]!r}, which torch, F and math do not have")
    if not names:
        raise GradsmithError(f"the formula {text!r} has no tensor: every name in it is a function of torch or math")
    source = f"def {name}({', '.join(names)}):\n    return {text.strip()}\n"
    path = f"<formula {name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), scope)
    function: Callable[..., Any] = scope[name]  # type: ignore[assignment]
    return Formula(function, tuple(names), _inputs(function, names))


def _of_either(of_tensors: Any, of_numbers: Any) -> Any:
    """`sqrt(2)` is a number, `sqrt(x)` a tensor."""
    if not callable(of_numbers) or of_tensors is of_numbers:
        return of_tensors

    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = all(isinstance(a, (int, float)) for a in args) and not kwargs
        return of_numbers(*args) if numbers else of_tensors(*args, **kwargs)

    return call


def named(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise GradsmithError(f"{name!r} is not a name that Python takes for a function")


def _inputs(function: Callable[..., Any], names: list[str]) -> str:
    """The first sizes, and of these the first domain, on which the formula is finite for every tensor."""
    problem = "it gives no tensor"
    others = itertools.product(_SIZES, repeat=len(names)) if 1 < len(names) <= _MOST_NAMES else ()
    tried = dict.fromkeys([(_SIZES[0],) * len(names), *others])
    for sizes, draw in itertools.product(tried, _DRAWS):
        each = [f"({draw.format(sizes=s, dtype=', dtype=torch.float64')}).requires_grad_()" for s in sizes]
        code = f"({', '.join(each)},)"
        torch.manual_seed(0)
        try:
            out = function(*eval(code, dict(_MODULES)))
        except Exception as error:
            problem = problem if problem != "it gives no tensor" else f"it raises {type(error).__name__}: {error}"
            continue
        if isinstance(out, torch.Tensor) and bool(torch.isfinite(out).all()) and out.requires_grad:
            return code
        problem = "it is not finite, or does not depend on its tensors"
    raise GradsmithError(f"the formula does not work on tensors of shape (3, 4): {problem}")

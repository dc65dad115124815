"""Signs that a backward is meant to differ from the derivative: a step on the way, the author's words, a test on grad_output."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize

import torch

from gradsmith.lab import source_of
from gradsmith.lab.arguments import Arguments
from gradsmith.lab.questions import chooses, steps
from gradsmith.lab.run import forward
from gradsmith.lab.tape import OperationTape
from gradsmith.lab.target import Target, backward_of

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
    if target.function is None:
        return ""
    try:
        prose = _prose(source_of.text(target.function))
    except (SyntaxError, tokenize.TokenError):
        return ""
    return f"{target.name}\n{inspect.getcomments(target.function) or ''}\n{prose}\n{_said_by_callers(target)}"


def _said_by_callers(target: Target) -> str:
    """The docstrings of what applies the Function in its own module: that is where users are told what it is."""
    module = inspect.getmodule(target.function)
    try:
        tree = ast.parse(source_of.text(module))
    except SyntaxError:
        return ""
    applied = re.compile(rf"\b{re.escape(target.name.rpartition('.')[2])}\.apply\b")
    return "\n".join(
        ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and applied.search(ast.unparse(node))
    )


def _prose(source: str) -> str:
    """Comments and docstrings: a variable called grad_scale says nothing."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    defined = (ast.FunctionDef, ast.ClassDef)
    docs = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, defined)]
    return "\n".join([*comments, *docs])


def tests_grad_output(target: Target) -> bool:
    """Whether backward asks how large a gradient is, or of which sign: `(x >= bound) | (grad_output < 0)`."""
    found = source_of.definition(backward_of(target.function)) if target.function is not None else None
    if found is None:
        return False
    grads = {a.arg for a in found.args.args[1:]}
    return any(
        isinstance(node, ast.Compare)
        and all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        and any(isinstance(side, ast.Name) and side.id in grads for side in (node.left, *node.comparators))
        for node in ast.walk(found)
    )


def holds_parts(target: Target) -> bool:
    """Whether forward says that some of what it computes is to count as constant."""
    found = source_of.definition(target.function.forward) if target.function is not None else None
    return found is not None and any(
        isinstance(node, ast.Attribute) and node.attr in ("no_grad", "detach") for node in ast.walk(found)
    )


def passes_a_step(target: Target, tape: OperationTape, position: int) -> bool:
    """Whether forward rounds, or takes the sign of, what it computes from this input."""
    return steps(tape, position) or (chooses(tape, position) and bool(_STEP_NAMED.search(target.name)))

"""Shapes as people write them down: in docstrings and in comments beside the parameters.

`weight (torch.Tensor): the projection. Shape: (vocab_size, hidden_size).`, `xyz: (B, N, 3) tensor`, `q,  # [b, h, n, d]`,
`# A is NxT, X is NxTxD`.
Names of dimensions mean the same size wherever they occur; what is written may be out of date, so it is only tried first.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

from gradsmith.source import model_of
from gradsmith.source.lexicon import is_a
from gradsmith.source.loaded import method_of

Dims = tuple[str, ...]
_LARGEST = 64  # sizes as numbers beyond this are those of somebody's model, too large to try
_DIM = r"[A-Za-z_]\w*(?:\s*[-+*/]\s*\w+)*|\d+(?:\s*\*\s*[A-Za-z_]\w*)?|\.\.\."
_COMMAS = re.compile(rf"[(\[]\s*((?:{_DIM})(?:\s*,\s*(?:{_DIM}))+|(?:{_DIM})\s*,)\s*,?\s*[)\]]")
_CROSSES = re.compile(rf"[(\[]\s*((?:{_DIM})(?:\s*[x×]\s*(?:{_DIM}))+)\s*[)\]]")
_ALONE = re.compile(rf"[Ss]hape:?\s*[(\[]\s*({_DIM})\s*[)\]]")


def documented(function: type, names: Iterable[str]) -> dict[str, Dims]:
    """The dimensions that the docstrings and the signature's comments of a Function give for its inputs.

    >>> class Scale:
    ...     '''x: (B, N, 3) the points'''
    ...     def forward(ctx, x): ...
    >>> documented(Scale, ["x"])
    {'x': ('B', 'N', '3')}
    """
    forward: Any = getattr(function, "forward", None)
    texts = [inspect.getdoc(forward) or "", inspect.getdoc(function) or "", _comments(forward)]
    prose = "\n".join([*texts, _remarks(function)])
    found: dict[str, Dims] = {}
    for name in names:
        for dims in (*(_entry(text, name) for text in texts), _said(prose, name)):
            if dims is not None:
                found[name] = dims
                break
    return found


def documented_domains(function: type, names: Iterable[str]) -> dict[str, str]:
    """The range that a docstring gives for an input: `a: shape parameter (must be positive)`, `x: a value in [0, 1]`.

    >>> class Beta:
    ...     def forward(ctx, a, x):
    ...         '''
    ...         a: the shape (must be positive)
    ...         x: a value in [0, 1]
    ...         '''
    >>> documented_domains(Beta, ["a", "x"])
    {'a': 'positive', 'x': 'unit'}
    """
    texts = [inspect.getdoc(each) or "" for each in (getattr(function, "forward", None), function)]
    said = {name: next(filter(None, (_passage(text, name) for text in texts)), "") for name in names}
    return {name: domain for name, text in said.items() if (domain := _domain(text))}


def _domain(text: str) -> str:
    words = text.lower()
    if re.search(r"[\[(]0(\.0?)?, ?1(\.0?)?[\])]|between 0 and 1|probabilit", words):
        return "unit"
    return "positive" if re.search(r"(?<!non-)(?<!semi-)\bpositive\b(?! definite)|> ?0\b", words) else ""


def _entry(text: str, name: str) -> Dims | None:
    """The first shape in what is said of `name`."""
    said = _passage(text, name)
    return _shape(said) if said else None


def _passage(text: str, name: str) -> str:
    """What follows `name` at the start of a line, up to the next entry."""
    opening = re.compile(
        rf"^\s*(?::param\s+(?:\w+\s+)?|[-*]\s*|`+)*{re.escape(name)}`*\s*(?=[:,(\[\-=#–])", re.MULTILINE
    )
    match = opening.search(text)
    if match is None:
        return ""
    rest = text[match.end() :]
    end = re.search(r"\n\s*\n|\n\s*(?::param\s+|[-*]\s*|`+)?\w+`*\s*(?:\([^)]*\))?\s*:\s|\n\s*:?[Rr]eturns?\b", rest)
    return rest[: end.start()] if end else rest[:400]


def _shape(text: str) -> Dims | None:
    for pattern, separator in ((_COMMAS, ","), (_CROSSES, "[x×]"), (_ALONE, ",")):
        for match in pattern.finditer(text):
            dims = tuple(re.sub(r"\s+", "", d) for d in re.split(rf"\s*{separator}\s*", match[1]) if d.strip())
            if _plausible(dims):
                return dims
    return None


def _plausible(dims: Dims) -> bool:
    if not dims or len(dims) > 6 or any(is_a(d, "no dimension") for d in dims):
        return False
    return not any(d.isdigit() and not 0 < int(d) <= _LARGEST for d in dims)


def _said(prose: str, name: str) -> Dims | None:
    """`X is NxTxD`: the last time it is said, which stands next to forward."""
    said = re.findall(rf"\b{re.escape(name)}\s+is\s+(?:an?\s+)?([A-Z0-9](?:x[A-Z0-9])+)\b", prose)
    dims = tuple(said[-1].split("x")) if said else ()
    return dims if _plausible(dims) else None


def _remarks(function: type) -> str:
    """Comments on lines of their own, up to forward."""
    model = model_of(function)
    if model is None or model.forward is None or model.forward.inherited:
        return ""
    said = model.file.comment_lines
    own = (n for n in range(model.node.lineno, model.forward.node.lineno) if n in said)
    return "\n".join(said[n].strip(" #") for n in own if model.file.lines[n - 1].lstrip().startswith("#"))


def _comments(forward: Any) -> str:
    """`name: comment` for each parameter that has its comment behind it. (The annotation is no comment.)"""
    method = method_of(forward)
    said = method.file.comment_lines if method is not None else {}
    params = [(p.name, p.node.end_lineno or p.node.lineno) for p in method.params] if method is not None else []
    last = {line: name for name, line in reversed(params)}  # of several on a line the first, whose line it is
    return "\n\n".join(f"{name}: {said[line].lstrip('#')}" for line, name in sorted(last.items()) if line in said)

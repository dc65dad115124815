"""Shapes as people write them down: in docstrings and in comments beside the parameters.

`weight (torch.Tensor): the projection. Shape: (vocab_size, hidden_size).`, `xyz: (B, N, 3) tensor`, `q,  # [b, h, n, d]`,
`# A is NxT, X is NxTxD`.
Names of dimensions mean the same size wherever they occur; what is written may be out of date, so it is only tried first.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from gradsmith.source.lexicon import is_a

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


def _entry(text: str, name: str) -> Dims | None:
    """The first shape in what follows `name` at the start of a line, up to the next entry."""
    opening = re.compile(
        rf"^\s*(?::param\s+(?:\w+\s+)?|[-*]\s*|`+)*{re.escape(name)}`*\s*(?=[:,(\[\-=#–])", re.MULTILINE
    )
    match = opening.search(text)
    if match is None:
        return None
    rest = text[match.end() :]
    end = re.search(r"\n\s*\n|\n\s*(?::param\s+|[-*]\s*|`+)?\w+`*\s*(?:\([^)]*\))?\s*:\s|\n\s*:?[Rr]eturns?\b", rest)
    return _shape(rest[: end.start()] if end else rest[:400])


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
    try:
        text = inspect.getsource(function).split("def forward(")[0]
    except (OSError, TypeError):
        return ""
    return "\n".join(line.strip(" #") for line in text.splitlines() if line.strip().startswith("#"))


def _comments(forward: Any) -> str:
    """The lines of the signature, where each parameter has its comment behind it."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(forward)))
        node = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return ""
    last = node.body[0].lineno - 1 if isinstance(node, ast.FunctionDef) else 0
    lines = source.splitlines()[:last]
    # The annotation is no comment: only what stands behind the `#` is read as a shape.
    pairs = (re.match(r"\s*(\w+)\b[^#]*#(.*)", line) for line in lines)
    return "\n\n".join(f"{pair[1]}: {pair[2]}" for pair in pairs if pair)

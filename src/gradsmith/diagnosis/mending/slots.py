"""Changes of what is returned for which input: two slots exchanged, or a gradient that was computed and not returned."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from gradsmith.diagnosis.mending.own_source import OwnSource
from gradsmith.findings import Edit
from gradsmith.source.edits import replace

_MOST = 24


def slot_edits(source: OwnSource, wrong: Sequence[int]) -> Iterator[tuple[Edit, ...]]:
    """Edits of the return statement, for the positions whose gradient is wrong or missing."""
    backward = source.backward
    returns = [n for n in ast.walk(backward) if isinstance(n, ast.Return)] if backward is not None else []
    if backward is None or len(returns) != 1 or returns[0].value is None:
        return
    value = returns[0].value
    slots = list(value.elts) if isinstance(value, ast.Tuple) else [value]
    if any(isinstance(slot, ast.Starred) for slot in slots):
        return
    yield from itertools.islice(_edits(source, backward, slots, wrong), _MOST)


def _edits(
    source: OwnSource, backward: ast.FunctionDef, slots: list[ast.expr], wrong: Sequence[int]
) -> Iterator[tuple[Edit, ...]]:
    for a, b in itertools.combinations(range(len(slots)), 2):
        if a in wrong or b in wrong:
            texts = [source.file.source_of(slots[i]) for i in (b, a)]
            if texts[0] != texts[1]:
                yield tuple(replace(source.file, slots[i], text) for i, text in zip((a, b), texts))
    returned = {n.id for slot in slots for n in ast.walk(slot) if isinstance(n, ast.Name)}
    for position in wrong:
        for name in _computed(backward):
            if name not in returned and position < len(slots):
                yield (replace(source.file, slots[position], name),)


def _computed(backward: ast.FunctionDef) -> list[str]:
    """Names that backward gives to what it computes, the last first."""
    names = [n.id for n in ast.walk(backward) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(reversed(names)))

"""Changes of what is returned for which input: slots exchanged, moved, added or left out, or a gradient that was not returned."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from gradsmith.diagnosis.mending.own_source import OwnSource
from gradsmith.findings import Edit
from gradsmith.source.edits import replace

_MOST = 24


def slot_edits(source: OwnSource, wrong: Sequence[int], tensors: Sequence[int]) -> Iterator[tuple[Edit, ...]]:
    """Edits of the return statement, for the positions whose gradient is wrong or missing; `tensors` are all that have one."""
    backward = source.backward
    returns = [n for n in ast.walk(backward) if isinstance(n, ast.Return)] if backward is not None else []
    if backward is None or len(returns) != 1 or returns[0].value is None:
        return
    value = returns[0].value
    slots = list(value.elts) if isinstance(value, ast.Tuple) else [value]
    starred = any(isinstance(slot, ast.Starred) for slot in slots)
    count = _inputs(source)
    if starred or count is None:
        orders = _moved(slots, source)
    elif len(slots) == count:
        orders = _exchanged(slots, source, backward, wrong, tensors)
    else:
        orders = _counted(slots, source, backward, count)
    for texts in itertools.islice(dict.fromkeys(orders), _MOST):
        if len(texts) == len(slots):
            changed = [(slot, text) for slot, text in zip(slots, texts) if source.file.source_of(slot) != text]
            yield tuple(replace(source.file, slot, text) for slot, text in changed)
        else:
            whole = ", ".join(texts)
            yield (
                replace(source.file, value, f"({whole})" if source.file.source_of(value).startswith("(") else whole),
            )


def _inputs(source: OwnSource) -> int | None:
    """How many gradients torch expects; None for `*args`."""
    arguments = source.forward.args
    if arguments.vararg is not None or arguments.kwonlyargs:
        return None
    return len(arguments.posonlyargs) + len(arguments.args) - (source.setup is None)


def _exchanged(
    slots: list[ast.expr],
    source: OwnSource,
    backward: ast.FunctionDef,
    wrong: Sequence[int],
    tensors: Sequence[int],
) -> Iterator[tuple[str, ...]]:
    texts = [source.file.source_of(slot) for slot in slots]
    for a, b in itertools.combinations(range(len(slots)), 2):
        empty = texts[a if b in tensors else b] == "None" and not (a in tensors and b in tensors)
        if (a in wrong or b in wrong) and texts[a] != texts[b] and not empty:
            yield (*texts[:a], texts[b], *texts[a + 1 : b], texts[a], *texts[b + 1 :])
    for position in wrong:
        for name in _unreturned(backward, slots):
            if position < len(slots):
                yield (*texts[:position], name, *texts[position + 1 :])


def _moved(slots: list[ast.expr], source: OwnSource) -> Iterator[tuple[str, ...]]:
    """One of them at another place, where nobody knows how many the others are."""
    texts = [source.file.source_of(slot) for slot in slots]
    for i, text in enumerate(texts):
        rest = [*texts[:i], *texts[i + 1 :]]
        for j in range(len(texts)):
            if j != i:
                yield (*rest[:j], text, *rest[j:])
        yield tuple(rest)
    yield (*texts, "None")


def _counted(
    slots: list[ast.expr], source: OwnSource, backward: ast.FunctionDef, count: int
) -> Iterator[tuple[str, ...]]:
    """As many as torch expects: a gradient that was computed, or None, more; the last ones, or any, fewer."""
    texts = [source.file.source_of(slot) for slot in slots]
    if len(texts) > count:
        kept = itertools.combinations(range(len(texts)), count)
        yield from sorted((tuple(texts[i] for i in each) for each in kept), key=lambda each: each.count("None"))
        return
    names = _unreturned(backward, slots)
    missing = count - len(texts)
    for fill in ("None", *names):
        for at in range(len(texts), -1, -1):
            rest = ("None",) * (missing - 1)
            yield (*texts[:at], fill, *texts[at:], *rest)


def _unreturned(backward: ast.FunctionDef, slots: list[ast.expr]) -> list[str]:
    """Names that backward gives to what it computes and does not return, the last first."""
    returned = {n.id for slot in slots for n in ast.walk(slot) if isinstance(n, ast.Name)}
    names = [n.id for n in ast.walk(backward) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return [name for name in dict.fromkeys(reversed(names)) if name not in returned]

"""Statements that nothing reads any more once a gradient is computed elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradsmith.diagnosis.mending.hand import SAVED

_ASSIGNING = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


def unread(function: ast.FunctionDef, gone: Sequence[ast.AST], words: frozenset[str]) -> list[ast.stmt]:
    """The statements to take out besides `gone`, outermost only, where the new lines read `words`.

    A name that nobody read before was left there by its author, and stays; so does what unpacks the saved tensors.
    """
    parameters = {a.arg for a in function.args.args}
    read_before = _loads(function, ())
    dead: list[ast.AST] = list(gone)
    while True:
        reads = _loads(function, dead) | words
        fresh = [
            s
            for s in ast.walk(function)
            if isinstance(s, _ASSIGNING) and not _inside(s, dead) and _is_dead(s, reads, read_before, parameters, dead)
        ]
        if not fresh:
            break
        dead += fresh
    taken = [s for s in dead if isinstance(s, ast.stmt) and s not in gone]
    return _outermost(function, taken, gone)


def _is_dead(
    statement: ast.stmt, reads: set[str], before: set[str], parameters: set[str], dead: Sequence[ast.AST]
) -> bool:
    names = set(_written(statement))
    value = getattr(statement, "value", None)
    if not names or names & parameters or any(isinstance(n, ast.Attribute) and n.attr in SAVED for n in _within(value)):
        return False
    own = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return not names & reads and bool(names & (before | own))


def _within(node: ast.AST | None) -> Iterator[ast.AST]:
    return ast.walk(node) if node is not None else iter(())


def _written(statement: ast.stmt) -> Iterator[str]:
    """The names a statement writes to, also by index; nothing where it writes to something else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore[attr-defined]
    for target in targets:
        for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            base = each
            while isinstance(base, ast.Subscript):
                base = base.value
            yield base.id if isinstance(base, ast.Name) else ""


def _loads(function: ast.AST, without: Sequence[ast.AST]) -> set[str]:
    """Names that are read, except to write into them and inside what is gone."""
    hidden = {id(n) for each in without for n in ast.walk(each)}
    for n in ast.walk(function):
        if isinstance(n, (ast.Assign, ast.AugAssign)):
            targets = n.targets if isinstance(n, ast.Assign) else [n.target]
            for target in targets:
                base = target
                while isinstance(base, ast.Subscript):
                    base = base.value
                hidden.add(id(base))
    return {
        n.id
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in hidden
    }


def _inside(statement: ast.AST, dead: Sequence[ast.AST]) -> bool:
    return any(n is statement for each in dead for n in ast.walk(each))


def _outermost(function: ast.FunctionDef, dead: list[ast.stmt], gone: Sequence[ast.AST]) -> list[ast.stmt]:
    """Blocks that would be empty go as a whole; of a block that has another branch, nothing is taken."""
    result = list(dead)
    for block in ast.walk(function):
        if not isinstance(block, (ast.If, ast.For, ast.With)):
            continue
        bodies = [b for b in (getattr(block, f, None) for f in _BLOCKS) if b]
        emptied = [b for b in bodies if all(s in result for s in b)]
        if len(emptied) == len(bodies) and not any(_inside(g, [block]) for g in gone):
            result = [s for s in result if not _inside(s, [block])] + [block]
        elif emptied:
            result = [s for s in result if not any(s in b for b in emptied)]
    return result

"""What is certainly bound where a function returns: names and attributes that every path before it has set.

Flow says which assignments may reach a read. This says whether there is a way on which none does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.method import Method

Bound = frozenset[str]


@dataclass
class Assured:
    """`at` holds what is bound at each return; `end` at the end of the body, None where that is never reached."""

    at: dict[ast.Return, Bound] = field(default_factory=dict)
    end: Bound | None = None
    # What is bound where the loops around the current place are left, and where their next round begins early.
    _breaks: list[list[Bound]] = field(default_factory=list)
    _continues: list[list[Bound]] = field(default_factory=list)

    def missing_at(self, name: str) -> list[ast.Return | None]:
        """The returns before which the name may be unbound; None stands for the end of the body."""
        found: list[ast.Return | None] = [node for node, bound in self.at.items() if name not in bound]
        return [*found, None] if self.end is not None and name not in self.end else found


def assured(method: Method) -> Assured:
    """Names are their own text, attributes of ctx are `ctx.name` whatever the ctx is called."""
    found = Assured()
    start = frozenset(p.name for p in method.params)
    found.end = _block(method, method.node.body, start, found)
    return found


def _block(method: Method, statements: Sequence[ast.stmt], bound: Bound | None, found: Assured) -> Bound | None:
    for statement in statements:
        if bound is None:
            return None
        bound = _after(method, statement, bound, found)
    return bound


def _after(method: Method, node: ast.stmt, bound: Bound, found: Assured) -> Bound | None:
    if isinstance(node, ast.Return):
        found.at[node] = bound
        return None
    if isinstance(node, (ast.Break, ast.Continue)):
        around = found._breaks if isinstance(node, ast.Break) else found._continues
        if around:  # a file need not compile to be read
            around[-1].append(bound)
        return None
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and _is_constant(node.test, False)):
        return None
    if isinstance(node, ast.If):
        return _both(_block(method, node.body, bound, found), _block(method, node.orelse, bound, found))
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return _loop(method, node, bound, found)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        taken = [_stored(method, item.optional_vars) for item in node.items]
        return _block(method, node.body, bound.union(*taken), found)
    if isinstance(node, ast.Try):
        body = _block(method, [*node.body, *node.orelse], bound, found)
        ways = [body, *(_block(method, handler.body, bound, found) for handler in node.handlers)]
        reached = [way for way in ways if way is not None]
        after = frozenset.intersection(*reached) if reached else None
        return _block(method, node.finalbody, after if after is not None else bound, found) if node.finalbody else after
    if isinstance(node, ast.Match):
        ways = [_block(method, case.body, bound | _captured(case.pattern), found) for case in node.cases]
        reached = [way for way in ways if way is not None]
        return frozenset.intersection(*reached) if reached else None
    return bound | frozenset(_bindings(method, node))


def _loop(method: Method, node: ast.For | ast.AsyncFor | ast.While, bound: Bound, found: Assured) -> Bound | None:
    """A loop over nothing is not what anybody means: its body counts as run once."""
    found._breaks.append([])
    found._continues.append([])
    inside = _block(method, node.body, bound | _stored(method, getattr(node, "target", None)), found)
    broken, continued = found._breaks.pop(), found._continues.pop()
    rounds = [*continued, *([inside] if inside is not None else [])]
    endless = isinstance(node, ast.While) and _is_constant(node.test, True)
    done = frozenset.intersection(*rounds) if rounds and not endless else None
    if done is None and not endless and not broken:
        done = bound
    after = _block(method, node.orelse, done, found)
    ways = [*broken, *([after] if after is not None else [])]
    return frozenset.intersection(*ways) if ways else None


def _is_constant(test: ast.expr, truth: bool) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value) is truth


def _both(a: Bound | None, b: Bound | None) -> Bound | None:
    return b if a is None else a if b is None else a & b


def _captured(pattern: ast.pattern) -> Bound:
    return frozenset(n.name for n in ast.walk(pattern) if isinstance(n, ast.MatchAs) and n.name)


def _stored(method: Method, target: ast.AST | None) -> Bound:
    return frozenset(_names(method, target)) if target is not None else frozenset()


def _bindings(method: Method, node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    yield from _names(method, node)


def _names(method: Method, node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and method.context.is_ctx(part.value):
            yield f"ctx.{part.attr}"

"""Under which conditions a piece of code runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradsmith.source.method import Method

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Guard(NamedTuple):
    """A test, and whether the code runs when it holds (`positive`) or when it does not."""

    test: ast.expr
    positive: bool
    node: ast.AST


def read_guards(method: Method, node: ast.AST) -> list[Guard]:
    """Innermost first; `if done: return` before a statement guards what follows it."""
    found: list[Guard] = []
    child = node
    for parent in (*method.ancestors(node), method.node):
        if isinstance(parent, (ast.If, ast.IfExp, ast.While)):
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            orelse = parent.orelse if isinstance(parent.orelse, list) else [parent.orelse]
            if child in body or child in orelse:
                found.append(Guard(parent.test, child in body, parent))
        elif isinstance(parent, ast.BoolOp) and child in parent.values:
            earlier = parent.values[: parent.values.index(child)]
            found += [Guard(v, isinstance(parent.op, ast.And), parent) for v in earlier]
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and child in block:
                for before in block[: block.index(child)]:
                    if isinstance(before, ast.If) and not before.orelse and isinstance(before.body[-1], _LEAVES):
                        found.append(Guard(before.test, False, before))
        child = parent
    return found


def is_none_test(test: ast.expr) -> tuple[str, bool] | None:
    """`x is None` -> ("x", True), `x is not None` -> ("x", False); the expression as text."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None:
            return ast.unparse(test.left), isinstance(test.ops[0], ast.Is)
    return None


def not_none(method: Method, node: ast.AST, name: str) -> bool:
    """Does `node` run only when `name` is not None (or is true)?"""
    for guard in method.guards(node):
        for part in _conjuncts(guard.test, guard.positive):
            test, positive = part
            found = is_none_test(test)
            if found is not None and found[0] == name and found[1] != positive:
                return True
            if positive and ast.unparse(test) == name:
                return True
    return False


def no_tensor(method: Method, node: ast.AST, name: str) -> bool:
    """Does `node` run only when `name` is no tensor? The test may stand in a name or an attribute of ctx."""
    for guard in method.guards(node):
        for test, positive in _conjuncts(guard.test, guard.positive):
            found = _kept(method, test)
            if not (isinstance(found, ast.Call) and found.args and ast.unparse(found.args[0]) == name):
                continue
            asked = method.dotted(found.func) or ""
            if asked == "torch.is_tensor" and not positive:
                return True
            if asked == "isinstance" and len(found.args) == 2:
                given = found.args[1]
                kinds = given.elts if isinstance(given, ast.Tuple) else [given]
                tensors = [(method.dotted(k) or "").endswith("Tensor") for k in kinds]
                if not any(tensors) if positive else all(tensors):
                    return True
    return False


def _kept(method: Method, test: ast.expr) -> ast.expr:
    """The test itself, behind a name or an attribute of ctx that holds it."""
    if isinstance(test, ast.Attribute) and method.context.is_ctx(test.value):
        written = [w.value for w in method.context.writes if w.attr == test.attr]
        return written[0] if len(written) == 1 and written[0] is not None else test
    return method.resolve(test)


def _conjuncts(test: ast.expr, positive: bool) -> list[tuple[ast.expr, bool]]:
    """The single tests that all must hold."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _conjuncts(test.operand, not positive)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if positive else ast.Or):
        return [part for value in test.values for part in _conjuncts(value, positive)]
    return [(test, positive)]


def contradicts(method: Method, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places never both run in one call: one of them runs where a test holds, the other where it does not."""
    tests = _conditions(method, other)
    return any(
        positive != opposite and _same_test(method, test, counterpart)
        for test, positive in _conditions(method, one)
        for counterpart, opposite in tests
    )


def _conditions(method: Method, node: ast.AST) -> list[tuple[ast.expr, bool]]:
    return [_affirmed(*part) for guard in method.guards(node) for part in _conjuncts(guard.test, guard.positive)]


_OPPOSITES: dict[type[ast.cmpop], ast.cmpop] = {ast.IsNot: ast.Is(), ast.NotEq: ast.Eq(), ast.NotIn: ast.In()}


def _affirmed(test: ast.expr, positive: bool) -> tuple[ast.expr, bool]:
    """`x is not None` that holds is `x is None` that does not."""
    opposite = _OPPOSITES.get(type(test.ops[0])) if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
    if opposite is None or not isinstance(test, ast.Compare):
        return test, positive
    return ast.Compare(test.left, [opposite], test.comparators), not positive


def _same_test(method: Method, one: ast.expr, other: ast.expr) -> bool:
    """Written alike, of names that hold the same, and not bound in a loop, whose next round may bring something else."""
    if one is not other and ast.dump(one) != ast.dump(other):
        return False
    names = [[n for n in ast.walk(test) if isinstance(n, ast.Name)] for test in (one, other)]
    bound = [[set(method.definitions(n)) for n in part] for part in names]
    again = any(
        b.how == "loop" or any(isinstance(a, (ast.For, ast.AsyncFor, ast.While)) for a in method.ancestors(b.node))
        for found in bound[0]
        for b in found
    )
    return bound[0] == bound[1] and not again


def needs_tested(method: Method, node: ast.AST) -> frozenset[int] | None:
    """Indices of the `ctx.needs_input_grad` entries that any guard of `node` looks at; None if one is not an index."""
    found: set[int] = set()
    for guard in method.guards(node):
        tested = needs_indices(method, guard.test)
        if tested is None:
            return None
        found |= tested
    return frozenset(found)


def needs_indices(method: Method, test: ast.expr) -> frozenset[int] | None:
    """Entries of needs_input_grad that an expression depends on, through names too; None if it uses it as a whole."""
    found: set[int] = set()
    seen: set[ast.AST] = set()
    stack: list[ast.AST] = [test]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, ast.Subscript) and method.context.is_needs(node.value):
            if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)):
                return None
            found.add(node.slice.value)
            continue
        if isinstance(node, ast.Attribute) and node.attr == "needs_input_grad":
            return None
        if isinstance(node, ast.Name):
            for binding in method.definitions(node):
                if binding.how == "unpack" and binding.value is not None and method.context.is_needs(binding.value):
                    if binding.index is None:
                        return None
                    found.add(binding.index)
                elif binding.value is not None:
                    stack.append(binding.value)
            continue
        stack.extend(ast.iter_child_nodes(node))
    return frozenset(found)

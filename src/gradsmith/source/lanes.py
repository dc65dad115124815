"""Which lanes of a masked load are undefined, and whether a reduction of the kernel adds them to lanes that count.

A row that was never loaded spoils its own row of a product and nothing else. So the question is asked along one axis: that along
which `tl.sum` sums, or `tl.dot` multiplies, followed back to the load through what turns, expands or reduces the block.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradsmith.source import knowledge as know
from gradsmith.source.kernels import argument, called
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source.kernels import Access, Kernel

Axis = int | None
"""Counted from the first axis, or from the last if negative; None: it is not known which, so any will do."""


def reduction_reached(kernel: Kernel, load: Access) -> str:
    """The name of a reduction that mixes undefined lanes of this load with others; "" if there is none."""
    for node in kernel.calls:
        name = called(node)
        if name in know.KERNEL_SCANS and argument(node, 2, "reverse") is None and _ends_early(kernel, load.mask):
            continue  # a scan comes to the lanes that were not loaded after all others
        if _is_for_the_next_step(kernel, node, load):
            continue
        for operand, axis in _reduced(node):
            if _arrives(kernel, operand, axis, load, set()):
                return name
    return ""


def _ends_early(kernel: Kernel, mask: ast.expr | None) -> bool:
    """`offsets < n`: the lanes that are left out are the last ones."""
    values = kernel.values(mask) if isinstance(mask, ast.Name) else [mask]
    return bool(values) and all(isinstance(v, ast.Compare) and isinstance(v.ops[0], ast.Lt) for v in values)


def _is_for_the_next_step(kernel: Kernel, reduction: ast.Call, load: Access) -> bool:
    """`before += tl.sum(x, 0)` in a loop over all blocks, read by the next step only: the last block, which is cut short, has none."""
    loops = [n for n in kernel.nodes if isinstance(n, (ast.For, ast.While)) and load.node in nodes_under(n)]
    if not loops or not _ends_early(kernel, load.mask):
        return False
    inside = nodes_under(loops[-1])
    update = next((n for n in inside if isinstance(n, ast.AugAssign) and n.value is reduction), None)
    if update is None or not isinstance(update.target, ast.Name) or not _moves_on(kernel, loops[-1], load):
        return False
    reads = [n for n, bindings in kernel.flow.at.items() if any(b.statement is update for b in bindings)]
    return all(n in inside and n.lineno < update.lineno for n in reads)


def _moves_on(kernel: Kernel, loop: ast.For | ast.While, load: Access) -> bool:
    """Whether each step of a loop masks other elements than the one before it."""
    behind = kernel.names_behind(load.mask) if load.mask is not None else set()
    counted = nodes_under(loop.target) if isinstance(loop, ast.For) else []
    advanced = [n.target for n in nodes_under(loop) if isinstance(n, ast.AugAssign)]
    return any(isinstance(n, ast.Name) and n.id in behind for n in (*counted, *advanced))


def _reduced(node: ast.Call) -> list[tuple[ast.expr, Axis]]:
    """What a call reduces, and along which axis of it."""
    name = called(node)
    if name == "dot":
        sides = (argument(node, 0, "input"), argument(node, 1, "other"))
        return [(side, axis) for side, axis in zip(sides, (-1, -2)) if side is not None]
    operand = argument(node, 0, "input") if name in know.KERNEL_REDUCTIONS else None
    return [] if operand is None else [(operand, _axis(node))]


def _axis(node: ast.Call) -> Axis:
    given = argument(node, 1, "axis")
    if given is None and called(node) in know.KERNEL_SCANS:
        return 0
    try:
        value = ast.literal_eval(given) if given is not None else None
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _arrives(kernel: Kernel, node: ast.expr, axis: Axis, load: Access, seen: set[tuple[ast.AST, Axis]]) -> bool:
    """Whether lanes that differ along `axis` of this expression may be undefined because of the load."""
    if (node, axis) in seen:
        return False
    seen.add((node, axis))
    if node is load.node:
        return load.mask is not None and _varies(kernel, load.mask, axis, set())
    if (
        _keeps_rows(kernel, node, axis, load)
        or _cancels(kernel, node, load.mask)
        or _is_masked(kernel, node, load.mask)
    ):
        return False
    return any(_arrives(kernel, part, along, load, seen) for part, along in _behind(kernel, node, axis))


def _keeps_rows(kernel: Kernel, node: ast.expr, axis: Axis, load: Access) -> bool:
    """`tl.reshape(x, [ROWS, A, B])` of rows that a mask of ROWS lanes left out: they stay rows, and the other axes lie inside of one."""
    shape = argument(node, 1, "shape") if isinstance(node, ast.Call) and called(node) in ("reshape", "view") else None
    if not isinstance(shape, (ast.List, ast.Tuple)) or _position(axis, len(shape.elts)) in (None, 0):
        return False
    return _lanes(kernel, load.mask) == {ast.dump(shape.elts[0])}


def _is_masked(kernel: Kernel, node: ast.expr, mask: ast.expr | None) -> bool:
    """`mask & (x > 0)`: false in the lanes that were not loaded, whatever x is there."""
    if mask is None or not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitAnd):
        return False
    return _conditions(kernel, mask) <= _conditions(kernel, node)


def _conditions(kernel: Kernel, mask: ast.expr) -> set[str]:
    """What has to hold for a mask to hold, as texts; names that are assigned once are written out."""
    found, waiting, seen = set(), [mask], set[ast.expr]()
    while waiting:
        part = waiting.pop()
        values = kernel.values(part) if isinstance(part, ast.Name) else []
        part = values[0] if len(values) == 1 else part
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitAnd) and part not in seen:
            seen.add(part)
            waiting += [part.left, part.right]
        else:
            found.add(ast.dump(part))
    return found


def _cancels(kernel: Kernel, node: ast.expr, mask: ast.expr | None) -> bool:
    """`f(x) - f(tl.where(mask, x - 1, x))`: whatever x is in the lanes that were not loaded, nothing is left of it."""
    if mask is None or not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    not_loaded = _NotLoaded(kernel, ast.dump(mask))
    return not_loaded.number_of(node.left) == not_loaded.number_of(node.right)


@dataclass
class _NotLoaded:
    """What expressions are in the lanes that a mask leaves out: equal ones get the same number.

    Names that are assigned once are written out. (As numbers: as texts they would double with each of them.)
    """

    kernel: Kernel
    mask: str
    known: dict[ast.AST, int] = field(default_factory=dict)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def number_of(self, node: ast.AST) -> int:
        if node not in self.known:
            self.known[node] = -1 - len(self.known)  # a loop meets itself: equal to nothing else
            self.known[node] = self._number(node)
        return self.known[node]

    def _number(self, node: ast.AST) -> int:
        values = self.kernel.values(node) if isinstance(node, ast.Name) else []
        if len(values) == 1:
            return self.number_of(values[0])
        chosen = node.args if isinstance(node, ast.Call) and called(node) == "where" else []
        if len(chosen) == 3 and ast.dump(chosen[0]) == self.mask:
            return self.number_of(chosen[2])
        parts: list[object] = [node.__class__]
        for _, value in ast.iter_fields(node):
            for part in value if isinstance(value, list) else [value]:
                parts.append(self.number_of(part) if isinstance(part, ast.AST) else repr(part))
        return self.numbers.setdefault(tuple(parts), len(self.numbers))


def _lanes(kernel: Kernel, mask: ast.expr | None) -> set[str]:
    """The numbers of lanes, `N` of `tl.arange(0, N)`, that a mask is made of."""
    names = kernel.names_behind(mask) if mask is not None else set()
    parts = [mask, *(value for name in names for value in kernel.assigned.get(name, ()))]
    calls = [n for part in parts if part is not None for n in nodes_under(part) if isinstance(n, ast.Call)]
    return {ast.dump(end) for n in calls if called(n) == "arange" and (end := argument(n, 1, "end")) is not None}


def _behind(kernel: Kernel, node: ast.expr, axis: Axis) -> list[tuple[ast.expr, Axis]]:
    """The values an expression is made of, each with the axis that `axis` is there."""
    if isinstance(node, ast.Name):
        values = kernel.values(node)
        replaced = [v for v in values if _replaces(v, node.id)]
        # `if tail: x = tl.where(mask, x, 0)`: where it is skipped, nothing is left out.
        return [(value, axis) for value in replaced or values]
    if isinstance(node, ast.Subscript):
        return [(node.value, inside) for inside in _inside(node, axis)]
    if isinstance(node, ast.Call):
        return _behind_call(node, axis)
    if isinstance(node, ast.Attribute):
        return [(node.value, _turned(axis))] if node.attr == "T" else []
    return [(part, axis) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]


def _replaces(value: ast.expr, name: str) -> bool:
    """`tl.where(mask, x, 0)` for what x was before."""
    chosen = value.args[1:] if isinstance(value, ast.Call) and called(value) == "where" else []
    return any(isinstance(part, ast.Name) and part.id == name for part in chosen)


def _behind_call(node: ast.Call, axis: Axis) -> list[tuple[ast.expr, Axis]]:
    name = called(node)
    if name in ("where", "load"):
        return []  # chosen lane by lane; an address
    if name == "dot":
        left, right, before = (argument(node, i, n) for i, n in enumerate(("input", "other", "acc")))
        parts = [(left, -2)] if axis in (0, -2) else [(right, -1)] if axis in (1, -1) else [(left, -2), (right, -1)]
        return [(part, along) for part, along in (*parts, (before, axis)) if part is not None]
    if name in know.KERNEL_REDUCTIONS and name not in know.KERNEL_SCANS:
        return [(operand, _before(node, axis)) for operand, _ in _reduced(node)]
    method = node.func.attr if isinstance(node.func, ast.Attribute) and not name else name
    if method == "trans" and len(node.args) <= 1:
        axis = _turned(axis)
    elif method not in know.LANE_BY_LANE and name not in know.KERNEL_SCANS:
        axis = None
    own = [node.func.value] if isinstance(node.func, ast.Attribute) and not name else []
    return [(part, axis) for part in (*own, *node.args, *(k.value for k in node.keywords))]


def _inside(node: ast.Subscript, axis: Axis) -> tuple[Axis] | tuple[()]:
    """The axis of `x` that `axis` of `x[:, None]` is; nothing where it is the new one."""
    places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    position = _position(axis, len(places))
    if position is None:
        return (None,)
    if _is_new(places[position]):
        return ()
    return (sum(not _is_new(p) for p in places[:position]),)


def _before(node: ast.Call, axis: Axis) -> Axis:
    """The axis of what is reduced that `axis` of the result is."""
    along = _axis(node)
    if axis is None or along is None or axis < 0 or along < 0:
        return None
    kept = argument(node, 2, "keep_dims") is not None
    return axis if kept or axis < along else axis + 1


def _turned(axis: Axis) -> Axis:
    return {0: -1, -2: -1, 1: -2, -1: -2}.get(axis) if axis is not None else None


def _position(axis: Axis, rank: int) -> int | None:
    if axis is None or not -rank <= axis < rank:
        return None
    return axis % rank


def _is_new(place: ast.expr) -> bool:
    return isinstance(place, ast.Constant) and place.value is None


def _varies(kernel: Kernel, node: ast.expr, axis: Axis, seen: set[ast.AST], counted: bool = False) -> bool:
    """Whether a mask differs from lane to lane along this axis; yes where the source does not say.

    `counted`: it is one side of `rows[:, None] < M`. What is handed to a kernel beside its pointers is a number there.
    """
    if axis is None or node in seen:
        return axis is None
    seen.add(node)
    if isinstance(node, ast.Constant):
        return False
    if isinstance(node, ast.Name):
        values = kernel.values(node)
        return any(_varies(kernel, value, axis, seen, counted) for value in values) if values else not counted
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value is not None:
        return False  # `meta["BLOCK"]`, `sizes[0]`: one of several numbers that were handed over
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return _inside(node, axis) != ()
    if isinstance(node, ast.Call):
        if called(node) == "load" and not _lanes(kernel, argument(node, 0, "pointer")):
            return False  # one number
        # Backends bring functions of the same name: `tle.program_id`.
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return name not in know.KERNEL_SCALARS
    if not kernel.leaves_out(node):
        return False
    if isinstance(node, (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp)):
        sides = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        if isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and not _joins_masks(node)):
            counted = True
        return any(_varies(kernel, side, axis, seen, counted) for side in sides)
    return True


def _joins_masks(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))

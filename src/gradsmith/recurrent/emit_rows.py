"""Stage 3c: order the operations of one time step into row programs between matrix products.

A phase is what happens to every row between two matrix products. Within a phase, operations over the same row
shape share one loop if nothing reads another element than its own; the level counts such loops one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import fx

from gradsmith.native.refused import Refused

from .emit_expr import CHEAP, POINTWISE
from .emit_index import VIEWS, row_shape
from .nodes import args_of
from .rows import dims_of
from .split import MATRIX_PRODUCTS

aten = torch.ops.aten

FULL_REDUCTIONS = {aten.sum.dim_IntList: "sum", aten.amax.default: "amax", aten.amin.default: "amin"}
SCATTERS = frozenset({aten.slice_scatter.default, aten.select_scatter.default})
CONSTANTS = frozenset({aten.full.default, aten.scalar_tensor.default, aten.full_like.default})
_LOOPED = frozenset(
    {*POINTWISE, *VIEWS, *FULL_REDUCTIONS, *SCATTERS, *CONSTANTS, *MATRIX_PRODUCTS, aten.cat.default, aten.bmm.default}
)


def has_c_form(node: fx.Node) -> bool:
    return node.target in _LOOPED


@dataclass
class Item:
    """One piece of work on every row: compute `node`, or (`copies`) store a value that exists elsewhere."""

    node: fx.Node
    kind: str  # map | reduce | batchsum | partial | bmm | cat
    shape: tuple[int, ...]
    phase: int = 0
    level: int = 0
    piece: int = 0

    @property
    def alone(self) -> bool:
        """Needs a loop of its own: its order of accumulation is not the order of the elements of a row."""
        if self.kind == "batchsum":
            return dims_of(self.node) != [0] or self.shape[0] != 1
        return self.kind in ("partial", "bmm") or (
            self.kind == "reduce" and self.node.target is not aten.sum.dim_IntList
        )


@dataclass
class Schedule:
    """Items by (phase, level, loop shape), and the products that run before each phase."""

    items: list[Item] = field(default_factory=list)
    products: dict[int, list[fx.Node]] = field(default_factory=dict)
    phases: int = 1

    def groups(self, phase: int) -> list[list[Item]]:
        found: dict[tuple[int, tuple[int, ...], str], list[Item]] = {}
        for item in self.items:
            if item.phase == phase:
                found.setdefault((item.level, item.shape, item.node.name if item.alone else ""), []).append(item)
        return [found[key] for key in sorted(found, key=lambda k: k[0])]


class Scheduler:
    """Places every computed node; `stored` nodes need a copy of their value written somewhere."""

    def __init__(
        self, nodes: list[fx.Node], sums: list[fx.Node], stored: list[fx.Node], copied: list[fx.Node], rows: int
    ) -> None:
        """`copied` results of products have more than one destination."""
        self.nodes, self.rows = nodes, rows
        self.computed = set(nodes)
        self.stored = set(stored)
        self.place: dict[fx.Node, Item] = {}
        self.product_phase: dict[fx.Node, int] = {}
        self.schedule = Schedule()
        self.inlined: set[fx.Node] = set()
        for node in reversed(nodes):
            if self._is_inlined(node):
                self.inlined.add(node)
        for node in nodes:
            self._add(node)
        for node in sums:
            self._place(Item(node, "batchsum", row_shape(args_of(node)[0], rows)), [args_of(node)[0]])
        for node in dict.fromkeys(stored):
            if (node not in self.place and node not in self.product_phase) or node in copied:
                self._place(Item(node, "map", row_shape(node, rows)), [node], itself=True)
        self.schedule.phases = 1 + max([i.phase for i in self.schedule.items] + list(self.product_phase.values()) + [0])

    def _is_inlined(self, node: fx.Node) -> bool:
        """Views and constants cost nothing; a cheap sum that is only ever read in slices is computed where it is read."""
        if node.target in VIEWS or node.target in CONSTANTS:
            return True
        if node.target in SCATTERS:
            return True
        if node.target not in CHEAP or node in self.stored:
            return False
        users = [u for u in node.users if u in self.computed]
        return bool(users) and self._times_read(node) <= 1

    def _times_read(self, node: fx.Node) -> float:
        """How often, on average, an element of `node` would be computed if it were computed where it is read."""
        share = 0.0
        size = torch.Size(row_shape(node, self.rows)).numel()
        for user in node.users:
            if user not in self.computed:
                continue
            if user.target in (aten.slice.Tensor, aten.select.int):
                share += torch.Size(row_shape(user, self.rows)).numel() / size
            elif (
                user in self.inlined
                and user.target in CHEAP
                and row_shape(user, self.rows) == row_shape(node, self.rows)
            ):
                share += self._times_read(user)
            else:
                return 2.0
        return share

    def _add(self, node: fx.Node) -> None:
        shape = row_shape(node, self.rows)
        if node in self.inlined:
            return
        if node.target in MATRIX_PRODUCTS:
            operand: fx.Node = args_of(node)[0]
            phase, _ = self._ready(operand)
            self.product_phase[node] = phase + 1
            self.schedule.products.setdefault(phase + 1, []).append(node)
        elif node.target is aten.cat.default:
            self._add_cat(node)
        elif node.target in FULL_REDUCTIONS:
            source: fx.Node = args_of(node)[0]
            whole = all(size == 1 for size in shape)
            self._place(
                Item(node, "reduce" if whole else "partial", row_shape(source, self.rows) if whole else shape), [source]
            )
        elif node.target is aten.bmm.default:
            self._place(Item(node, "bmm", shape), list(node.all_input_nodes))
        elif node.target in POINTWISE:
            self._place(Item(node, "map", shape), list(node.all_input_nodes))
        else:
            raise Refused(f"{node.target} has no C form")

    def _add_cat(self, node: fx.Node) -> None:
        """Each piece is stored by the loop that computes it, if there is one."""
        pieces: list[fx.Node] = list(args_of(node)[0])
        items = [Item(node, "cat", row_shape(p, self.rows), piece=i) for i, p in enumerate(pieces)]
        for item, piece in zip(items, pieces):
            self._place(item, [piece], register=False)
        last = max(items, key=lambda i: (i.phase, i.level))
        self.place[node] = last

    def _place(self, item: Item, operands: list[fx.Node], itself: bool = False, register: bool = True) -> None:
        item.phase, item.level = 0, 0
        for operand in operands:
            for base, same in self._bases(operand, item.shape):
                phase, level = self._base_ready(base, same and not item.alone)
                if (phase, level) > (item.phase, item.level):
                    item.phase, item.level = phase, level
        self.schedule.items.append(item)
        if register and not itself:
            self.place[item.node] = item

    def _bases(self, node: fx.Node, shape: tuple[int, ...]) -> list[tuple[fx.Node, bool]]:
        """What reading `node` in a loop over `shape` really reads, and whether it is the loop's own element."""
        if node not in self.inlined:
            return [(node, row_shape(node, self.rows) == shape)]
        if node.target in VIEWS or node.target in SCATTERS:
            return [(base, False) for o in node.all_input_nodes for base, _ in self._bases(o, ())]
        return [pair for o in node.all_input_nodes for pair in self._bases(o, ())]

    def _base_ready(self, base: fx.Node, same: bool) -> tuple[int, int]:
        if base in self.product_phase:
            return self.product_phase[base], 0
        item = self.place.get(base)
        if item is None:
            return 0, 0
        fused = same and item.kind == "map"
        return item.phase, item.level if fused else item.level + 1

    def _ready(self, node: fx.Node) -> tuple[int, int]:
        """The last phase that must have run before `node` is complete for all rows; -1 if it is given."""
        phase = 0 if node in self.inlined else -1
        for base, _ in self._bases(node, ()):
            if base in self.product_phase:
                # A product's result is complete when its phase starts; if it has to be rearranged, one phase later.
                phase = max(phase, self.product_phase[base] - (base is node))
            elif base in self.place:
                phase = max(phase, self.place[base].phase)
            elif base is not node:
                phase = max(phase, 0)
        return phase, 0

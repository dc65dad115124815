"""Stage 3d: write one time step as C: products and, between them, loops over rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from gradsmith.native.refused import Refused

from .emit_expr import POINTWISE, c_type, expression, literal
from .emit_index import VIEWS, Index, broadcast, linear, row_shape, through
from .emit_rows import CONSTANTS, SCATTERS, Item, Scheduler
from .nodes import args_of, dtype_of, shape_of
from .rows import argument, dims_of
from .split import MATRIX_PRODUCTS

aten = torch.ops.aten
_MAX_STACK = 512 * 1024


@dataclass(frozen=True)
class Place:
    """Where a value lies: `base` is a C pointer; `slot` names the first row of this step, or is a word for what has no time."""

    base: str
    slot: str  # a variable in C | "row" | "flat" | "work" | "local" | "chunk" (the steps of a chunk, in scratch memory)
    width: int
    kind: str
    adds: bool = False

    def at_row(self) -> str:
        if self.slot == "flat" or self.slot == "local":
            return self.base
        if self.slot == "row":
            return f"{self.base} + r * {self.width}"
        if self.slot == "work":
            return f"{self.base} + (r - r0) * {self.width}"
        if self.slot == "chunk":
            return f"{self.base} + (spot + (r - r0)) * {self.width}"
        return f"{self.base} + ({self.slot} + r) * {self.width}"

    def at_chunk(self) -> str:
        """The first row of this thread in the first step of the chunk."""
        return self.base if self.slot == "chunk" else f"{self.base} + (since + r0) * {self.width}"

    def at_first_row(self) -> str:
        return self.at_row().replace("(r - r0)", "0").replace(" r ", " r0 ").replace("+ r)", "+ r0)")


class StepWriter:
    """Turns scheduled items into C. `given` are values that exist before the step, `stores` where results go."""

    def __init__(
        self,
        nodes: list[fx.Node],
        sums: dict[fx.Node, str],
        given: dict[fx.Node, Place],
        stores: list[tuple[fx.Node, Place]],
        rows: int,
        backwards: bool,
    ) -> None:
        self.rows, self.sums, self.backwards = rows, sums, backwards
        self.given = dict(given)
        self.stores: dict[fx.Node, list[Place]] = {}
        for node, place in stores:
            self.stores.setdefault(node, []).append(place)
        self.work: list[Place] = []
        self.chunks: list[Place] = []
        self.weights: list[fx.Node] = []
        self.uses = 0
        products = [n for n in nodes if n.target in MATRIX_PRODUCTS]
        computed = set(nodes)
        operands: list[fx.Node] = [args_of(n)[0] for n in products]
        copied = [n for n in products if len(self.stores.get(n, [])) > 1 or any(p.adds for p in self.stores.get(n, []))]
        stored = list(self.stores)
        views = [
            o
            for o in operands
            if o in computed and (o.target in VIEWS or o.target in SCATTERS or o.target in CONSTANTS)
        ]
        self.scheduler = Scheduler(nodes, list(sums), [*stored, *views], copied, rows)
        self.schedule = self.scheduler.schedule
        self.where: dict[fx.Node, Place] = {}
        self.scalars: set[fx.Node] = set()
        self._find_places(products, operands, views)

    # -- where values live

    def _find_places(self, products: list[fx.Node], operands: list[fx.Node], views: list[fx.Node]) -> None:
        across = set(operands) | self._read_in_other_phases()
        needed = self._read_in_other_loops()
        for node in [*products, *(n for n in self.scheduler.place if n not in self.sums), *views]:
            own = [p for p in self.stores.get(node, []) if not p.adds]
            if node in products and not self.stores.get(node) and self._for_all_time(args_of(node)[0]):
                self.where[node] = Place(f"Z{len(self.chunks)}", "chunk", self._width(node), self._kind(node))
                self.chunks.append(self.where[node])
                continue
            if own and node not in self.given:
                self.where[node] = own[0]
            elif node in across or node in products:
                self.where[node] = self._new_work(node)
            elif node in needed or self.scheduler.place[node].kind in ("cat", "partial", "bmm"):
                item = self.scheduler.place[node]
                if item.kind == "reduce":
                    self.scalars.add(node)
                else:
                    self.where[node] = Place(f"l_{node.name}", "local", self._width(node), self._kind(node))
            elif self.scheduler.place[node].kind == "reduce":
                self.scalars.add(node)

    def _for_all_time(self, node: fx.Node) -> bool:
        """Whether the value is there for every time step before the loop starts."""
        return node in self.given and self.given[node].slot == "now" and node not in self.stores

    def _new_work(self, node: fx.Node) -> Place:
        place = Place(f"W{len(self.work)}", "work", self._width(node), self._kind(node))
        self.work.append(place)
        return place

    def elements_per_row(self) -> int:
        """What one row costs in one step, for the choice of threads: a unit is 64 operations of a product, or 8 others."""
        mapped = sum(torch.Size(item.shape).numel() for item in self.schedule.items)
        weights = [shape_of(args_of(n)[1]) for products in self.schedule.products.values() for n in products]
        return mapped // 8 + sum(k * n * 2 // 64 for k, n in weights)

    def _width(self, node: fx.Node) -> int:
        return torch.Size(row_shape(node, self.rows)).numel()

    def _kind(self, node: fx.Node) -> str:
        return c_type(dtype_of(node))

    def _reads(self) -> Iterator[tuple[Item, fx.Node, bool]]:
        for item in self.schedule.items:
            if item.kind == "cat":
                operands = [args_of(item.node)[0][item.piece]]
            elif (
                item.node in self.scheduler.place and self.scheduler.place[item.node] is item
            ) or item.kind == "batchsum":
                operands = list(item.node.all_input_nodes)
            else:
                operands = [item.node]
            for operand in operands:
                for base, same in self.scheduler._bases(operand, item.shape):
                    yield item, base, same

    def _read_in_other_phases(self) -> set[fx.Node]:
        place = self.scheduler.place
        return {base for item, base, _ in self._reads() if base in place and place[base].phase != item.phase}

    def _read_in_other_loops(self) -> set[fx.Node]:
        place = self.scheduler.place
        found = set()
        for item, base, same in self._reads():
            home = place.get(base)
            if home is not None and not (
                home.kind == "map" and same and (home.phase, home.level) == (item.phase, item.level) and not item.alone
            ):
                found.add(base)
        return found

    # -- text

    def body(self) -> list[str]:
        lines: list[str] = []
        for phase in range(self.schedule.phases):
            for node in self.schedule.products.get(phase, []):
                lines.append(self._product(node))
            lines += self._phase(phase)
        return lines

    def _product(self, node: fx.Node) -> str:
        a, b = args_of(node)
        assert isinstance(a, fx.Node) and isinstance(b, fx.Node)
        if b not in self.given or self.given[b].slot != "flat":
            raise Refused("a matrix product with a second operand that changes over time")
        if b not in self.weights:
            self.weights.append(b)
        source = self.where.get(a) or self.given.get(a)
        if source is None or source.slot in ("flat", "local") or source.kind != "real":
            raise Refused("a matrix product of a value that is not in memory row by row")
        number = self.weights.index(b)
        k, n = shape_of(b)
        factor = shape_of(a)[0] // self.rows
        place = self.where[node]
        if place.slot == "chunk":
            return self._chunk(self.backwards, factor, shape_of(b), source, number, place)
        if source.slot == place.slot == "now" and not any(user in self.where for user in node.users):
            # Nobody in the loop reads the result, and the operand stays: several steps can be made up for at once.
            return self._chunk(not self.backwards, factor, shape_of(b), source, number, place)
        return f"product(L * {factor}, {n}, {k}, {source.at_first_row()}, P{number}, {place.at_first_row()});"

    def _chunk(self, last: bool, factor: int, shape: Sequence[int], source: Place, number: int, target: Place) -> str:
        """The product of all steps of a chunk, at its first step in time or at its last."""
        when, steps = ("closes", "t % CHUNK + 1") if last else ("opens", "T - t < CHUNK ? T - t : CHUNK")
        k, n = shape
        pointers = f"{source.at_chunk()}, P{number}, {target.at_chunk()}, {int(target.slot == 'chunk')}"
        return f"if ({when}) product_over(first + (t - t % CHUNK), {steps}, r0, R, B, {factor}, {n}, {k}, {pointers});"

    def _phase(self, phase: int) -> list[str]:
        groups = self.schedule.groups(phase)
        if not groups:
            return []
        self.pointers: dict[Place, str] = {}
        self.locals: dict[str, Place] = {}
        self.phase_now = phase
        loops: list[str] = []
        for group in groups:
            loops += self._loop(group)
        if sum(p.width * 8 for p in self.locals.values()) > _MAX_STACK:
            raise Refused("a row of intermediate values does not fit the stack")
        head = [f"{p.kind} *restrict {name} = {p.at_row()};" for p, name in self.pointers.items()]
        head += [f"{p.kind} {p.base}[{p.width}] __attribute__((aligned(64)));" for p in self.locals.values()]
        return ["for (long r = r0; r < r0 + L; r++) {", *("  " + line for line in [*head, *loops]), "}"]

    def _pointer(self, place: Place) -> str:
        if place.slot == "local":
            self.locals[place.base] = place
            return place.base
        if place not in self.pointers:
            self.pointers[place] = f"p{len(self.pointers)}"
        return self.pointers[place]

    def _loop(self, group: list[Item]) -> list[str]:
        shape = group[0].shape
        index: Index = tuple("0" if size == 1 else f"i{d}" for d, size in enumerate(shape))
        self.memo: dict[tuple[fx.Node, Index], str] = {}
        self.lines: list[str] = []
        self.group = {id(item) for item in group}
        self.canonical = index
        if group[0].kind in ("partial", "bmm"):
            self._nested(group[0], index)
            return _nest(self.lines, shape, index, None)
        before: list[str] = []
        after: list[str] = []
        reductions: list[str] = []
        for item in group:
            self._item(item, index, before, after, reductions)
        simd = "#pragma omp simd" + (f" reduction(+:{', '.join(reductions)})" if reductions else "")
        vectorised = not any(item.alone for item in group) or bool(reductions)
        return [*before, *_nest(self.lines, shape, index, simd if vectorised else None), *after]

    def _item(self, item: Item, index: Index, before: list[str], after: list[str], reductions: list[str]) -> None:
        node = item.node
        if item.kind == "map":
            value = self._read(node, index)
            self._store(node, index, item.shape, value)
        elif item.kind == "cat":
            self._store_piece(item, index)
        elif item.kind == "batchsum":
            source: fx.Node = args_of(node)[0]
            value = self._read(source, index)
            kept = [d for d in range(len(index)) if d not in dims_of(node)]
            if not kept:
                name = f"s_{node.name}"
                before.append(f"real {name} = 0;")
                reductions.append(name)
                self.lines.append(f"{name} += {value};")
                after.append(f"{self.sums[node]}[0] += {name};")
            else:
                at = linear(tuple(index[d] for d in kept), tuple(item.shape[d] for d in kept))
                self.lines.append(f"{self.sums[node]}[{at}] += {value};")
        else:
            self._reduce(item, index, before, after, reductions)

    def _reduce(self, item: Item, index: Index, before: list[str], after: list[str], reductions: list[str]) -> None:
        node, name = item.node, f"s_{item.node.name}"
        value = self._read(args_of(node)[0], index)
        if node.target is aten.sum.dim_IntList:
            before.append(f"real {name} = 0;")
            reductions.append(name)
            self.lines.append(f"{name} += {value};")
        else:
            sign, start = (">", "-") if node.target is aten.amax.default else ("<", "")
            before.append(f"real {name} = {start}(real)INFINITY;")
            self.lines.append(f"{name} = ({value} {sign} {name} || {value} != {value}) ? {value} : {name};")
        for place in self._destinations(node):
            after.append(f"{self._pointer(place)}[0] {'+=' if place.adds else '='} {name};")

    def _destinations(self, node: fx.Node) -> list[Place]:
        places = list(self.stores.get(node, []))
        own = self.where.get(node)
        return [own, *(p for p in places if p != own)] if own is not None else places

    def _store(self, node: fx.Node, index: Index, shape: tuple[int, ...], value: str) -> None:
        copied_product = node in self.scheduler.product_phase
        for place in self._destinations(node):
            if not (copied_product and place == self.where[node]):
                self.lines.append(
                    f"{self._pointer(place)}[{linear(index, shape)}] {'+=' if place.adds else '='} {value};"
                )

    def _store_piece(self, item: Item, index: Index) -> None:
        pieces: list[fx.Node] = list(args_of(item.node)[0])
        dim = dims_of(item.node)[0]
        offset = sum(row_shape(p, self.rows)[dim] for p in pieces[: item.piece])
        value = self._read(pieces[item.piece], index)
        at = tuple(_shift(p, offset) if d == dim else p for d, p in enumerate(index))
        whole = row_shape(item.node, self.rows)
        for place in self._destinations(item.node):
            self.lines.append(f"{self._pointer(place)}[{linear(at, whole)}] {'+=' if place.adds else '='} {value};")

    def _nested(self, item: Item, index: Index) -> None:
        """A sum over some dimensions of a row, or a product of matrices within a row: an inner loop per element."""
        node = item.node
        outer, self.lines = self.lines, []
        if item.kind == "bmm":
            a, b = args_of(node)
            assert isinstance(a, fx.Node) and isinstance(b, fx.Node)
            shape: tuple[int, ...] = (row_shape(a, self.rows)[2],)
            inner: Index = ("k0",)
            value = f"{self._read(a, (index[0], index[1], 'k0'))} * {self._read(b, (index[0], 'k0', index[2]))}"
        else:
            source: fx.Node = args_of(node)[0]
            dims, whole = dims_of(node), row_shape(source, self.rows)
            keeps = bool(argument(node, 2, "keepdim", False))
            shape = tuple(whole[d] for d in dims)
            inner = tuple(f"k{n}" for n in range(len(dims)))
            rest = iter([p for d, p in enumerate(index) if not (keeps and d in dims)])
            value = self._read(
                source, tuple(inner[dims.index(d)] if d in dims else next(rest) for d in range(len(whole)))
            )
        if node.target in (aten.amax.default, aten.amin.default):
            sign, start = (">", "-(real)INFINITY") if node.target is aten.amax.default else ("<", "(real)INFINITY")
            self.lines.append(f"s = ({value} {sign} s || {value} != {value}) ? {value} : s;")
            loops = _nest(self.lines, shape, inner, None)
        else:
            start = "0"
            self.lines.append(f"s += {value};")
            loops = _nest(self.lines, shape, inner, "#pragma omp simd reduction(+:s)")
        self.lines = [*outer, f"real s = {start};", *loops]
        for place in self._destinations(node):
            self.lines.append(f"{self._pointer(place)}[{linear(index, item.shape)}] {'+=' if place.adds else '='} s;")

    # -- reading values

    def _read(self, node: fx.Node, index: Index) -> str:
        key = (node, index)
        if key in self.memo:
            return self.memo[key]
        text, simple = self._text(node, index)
        if not simple:
            name = f"v{self.uses}"
            self.uses += 1
            kind = c_type(dtype_of(node))
            self.lines.append(f"const {'int' if kind == 'flag' else kind} {name} = {text};")
            text = name
        self.memo[key] = text
        return text

    def _text(self, node: fx.Node, index: Index) -> tuple[str, bool]:
        """C text of one element, and whether it is too simple to deserve a name."""
        if node.target in CONSTANTS:
            value = args_of(node)[0] if node.target is aten.scalar_tensor.default else args_of(node)[1]
            return literal(value, c_type(dtype_of(node))), True
        item = self.scheduler.place.get(node)
        here = item is not None and id(item) in self.group and item.kind == "map"
        if not here and node not in self.scheduler.inlined:
            if node in self.scalars and item is not None and item.phase == self.phase_now:
                return f"s_{node.name}", True
            place = self.given.get(node) or self.where.get(node)
            if place is not None:
                return f"{self._pointer(place)}[{linear(index, row_shape(node, self.rows))}]", False
        if node.target in VIEWS:
            return self._read(args_of(node)[0], through(node, index, self.rows)), True
        if node.target in SCATTERS:
            return self._scattered(node, index), False
        if node.target in POINTWISE:
            texts = {o: self._read(o, broadcast(index, row_shape(o, self.rows))) for o in node.all_input_nodes}
            return expression(node, texts), False
        raise Refused(f"the value of {node.target} is not available where it is read")

    def _scattered(self, node: fx.Node, index: Index) -> str:
        """A tensor with a slice of it replaced: reads stay inside the slice even where its value is not used."""
        whole, part = args_of(node)[0], args_of(node)[1]
        assert isinstance(whole, fx.Node) and isinstance(part, fx.Node)
        shape = row_shape(whole, self.rows)
        dim = dims_of(node)[0]
        at = index[dim]
        if node.target is aten.select_scatter.default:
            chosen = args_of(node)[3] % shape[dim]
            inside, source = f"{at} == {chosen}", tuple(p for d, p in enumerate(index) if d != dim)
        else:
            start = argument(node, 3, "start", 0) or 0
            start = start + shape[dim] if start < 0 else start
            if argument(node, 5, "step", 1) != 1:
                raise Refused("a gradient through a slice with a step")
            count = row_shape(part, self.rows)[dim]
            inside = f"({at} >= {start} && {at} < {start + count})"
            near = f"({at} < {start} ? 0 : {at} >= {start + count} ? {count - 1} : {at} - {start})"
            source = tuple(near if d == dim else p for d, p in enumerate(index))
        return f"({inside} ? {self._read(part, source)} : {self._read(whole, index)})"


def _shift(position: str, offset: int) -> str:
    return str(int(position) + offset) if position.isdigit() else f"({position} + {offset})" if offset else position


def _nest(lines: list[str], shape: tuple[int, ...], index: Index, pragma: str | None) -> list[str]:
    loops = [(name, size) for name, size in zip(index, shape) if not name.isdigit()]
    if not loops:
        return ["{", *("  " + line for line in lines), "}"]
    text: list[str] = []
    for depth, (name, size) in enumerate(loops):
        if pragma is not None and depth == len(loops) - 1:
            text.append("  " * depth + pragma)
        text.append("  " * depth + f"for (long {name} = 0; {name} < {size}; {name}++) {{")
    text += ["  " * len(loops) + line for line in lines]
    text += ["  " * depth + "}" for depth in reversed(range(len(loops)))]
    return text

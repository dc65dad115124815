"""What backward keeps: the fewest bytes from which everything it needs can be computed again (a minimum cut)."""

from __future__ import annotations

from dataclasses import dataclass

from gradsmith.deriving.node import Node, is_number, nodes_in
from gradsmith.deriving.refusal import Refused
from gradsmith.recurrent.mincut import cheapest_to_keep
from gradsmith.source import knowledge as know

_NEVER = 1 << 50
_TERMS = 64  # of a reduction, where it counts: an example is small
_ALIVE = 0.75  # of its bytes an input or output costs: somebody else may hold it
_LEAST, _FAST = 12, 1  # so many passes over a value are worth keeping it
_SECOND_ORDER = 1.1  # so much more may it cost to be differentiable twice
# How many times as long as an addition of the same size, measured on 262,144 elements in float32 (torch 2.13, one thread).
_TIMES = {
    1.0: "add sub mul div neg to abs sign floor ceil round trunc relu clamp maximum minimum square reciprocal and or invert"
}
_TIMES |= {
    2.0: "sigmoid silu gelu",
    3.0: "sqrt rsqrt lt le gt ge eq ne",
    9.0: "logsigmoid softplus sin cos erf where masked_fill",
}
_TIMES |= {14.0: "tanh atan pow lgamma digamma", 8.0: "logsumexp", 16.0: "var std"}
_KNOWN = {op: times for times, ops in _TIMES.items() for op in ops.split()}
_BY_KIND = {"r": 1.0, "s": 5.0, "o": 16.0, "x": 64.0, "e": 5.0}
_ADDING_UP = know.ACCUMULATE | {"index_put"}


@dataclass(frozen=True)
class Plan:
    """`saved` in the order they were made; `again` is computed a second time in backward."""

    saved: tuple[Node, ...]
    again: tuple[Node, ...]
    twice: bool  # only inputs and outputs are saved, so backward can be differentiated

    @property
    def nbytes(self) -> int:
        return sum(n.nbytes for n in self.saved)


def planned(
    gradients: list[Node],
    outputs: list[Node],
    *,
    fast: bool,
    most: int,
    also: frozenset[Node] = frozenset(),
    once: bool = False,
) -> Plan:
    """The plan of least cost; at equal cost the one that can be differentiated again, unless `once`. `most` is what autograd keeps."""
    needed = _needed(gradients) | also
    worth = _FAST if fast else _LEAST
    plan = _cheapest(needed, outputs, worth, once)
    while plan.nbytes > most and worth < _LEAST:
        worth *= 2
        plan = _cheapest(needed, outputs, worth, once)
    return plan


def _cheapest(needed: set[Node], outputs: list[Node], worth: float, once: bool) -> Plan:
    plans = []
    for twice in (False,) if once else (True, False):
        try:
            plans.append(_plan(needed, outputs, twice=twice, worth=worth))
        except Refused:
            if not twice:
                raise
    careful, cheapest = plans[0], plans[-1]
    if (
        careful.twice
        and not _costly(careful)
        and _price(careful, outputs, worth) <= _price(cheapest, outputs, worth) * _SECOND_ORDER
    ):
        return careful
    return cheapest


def _price(plan: Plan, outputs: list[Node], worth: float) -> float:
    return sum(_to_keep(n, outputs) for n in plan.saved) + sum(_to_repeat(n, worth) for n in plan.again)


def _to_keep(node: Node, outputs: list[Node]) -> float:
    """Bytes at a size where dimensions differ from ones; what is alive anyway costs less."""
    given = node.op == "input" or node in outputs
    return _bytes(node) * (_ALIVE if given else 1)


def _to_repeat(node: Node, worth: float) -> float:
    """The time of computing it again, in bytes."""
    return _passes(node) * max((_bytes(n) for n in (node, *node.operands)), default=0) / worth


def _passes(node: Node) -> float:
    """How many times as long as an addition it takes, by kind."""
    operation = node.graph.operations.get(node.op)
    if operation is None:
        return 0 if node.op in ("item", *know.OUTSIDE) else 1
    if operation.kind == "v":
        return _passes_of_moving(node)
    if node.op == "pow" and is_number(node.args[1]) and node.args[1] in (2, 3):
        return 1
    return _KNOWN.get(node.op, _BY_KIND[operation.kind])


def _passes_of_moving(node: Node) -> float:
    """A view costs nothing, a copy one pass, and places that a tensor names several: their memory is not in order."""
    if node.is_parts or (node.is_tensor and _memory(node) in {_memory(n) for n in node.operands} - {0}):
        return 0
    places = [n for n in node.operands if n.is_tensor and not n.value.is_floating_point()]
    if not places:
        return 1
    one_by_one = any(len(n.dims) == len(node.dims) for n in places) or (node.op == "getitem" and _last_is_picked(node))
    return (8 if node.op in _ADDING_UP else 4) * (4 if one_by_one else 1)


def _last_is_picked(node: Node) -> bool:
    """Does an index choose along the last dimension, so that every element is fetched by itself?"""
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    last = index[-1]
    whole = len([i for i in index if i is not None]) == len(node.args[0].dims) and Ellipsis not in [
        i for i in index if not isinstance(i, Node)
    ]
    return whole and isinstance(last, Node) and last.is_tensor


def _bytes(node: Node) -> float:
    """What it takes on the example, if a reduction there had as many terms as it has where memory counts."""
    return node.nbytes * _share(node)


def _share(node: Node) -> float:
    if node.share is None:
        node.share = _computed_share(node)
    return node.share


def _computed_share(node: Node) -> float:
    operation = node.graph.operations.get(node.op)
    inner = [n for n in node.operands if n.is_tensor or n.is_parts] if node.op not in know.OUTSIDE else []
    if operation is None or not inner or not node.nbytes:
        return 1
    if operation.kind == "r":
        return min(1.0, _bytes(inner[0]) / _TERMS / node.nbytes)
    alike = [n for n in inner if n.nbytes == node.nbytes] if operation.kind == "e" else []
    return max(_share(n) for n in alike or inner)


def _needed(gradients: list[Node]) -> set[Node]:
    """The tensors of forward that backward reads."""
    found: set[Node] = set()
    seen: set[Node] = set()
    todo = list(gradients)
    while todo:
        node = todo.pop()
        if node in seen or node.op in know.OUTSIDE:
            continue
        seen.add(node)
        if not node.back and (node.is_tensor or node.is_parts):
            found.add(node)
        else:
            todo += read_by(node)
    return found


def read_by(node: Node) -> list[Node]:
    """The values that computing it reads. The vector-Jacobian product of a call reads what the call reads, not its result."""
    if node.op == "vjp":
        return [*node.args[0].operands, *nodes_in(node.args[2])]
    if node.op == "kept":
        return [node.args[0]]
    return node.operands


def _plan(needed: set[Node], outputs: list[Node], *, twice: bool, worth: float) -> Plan:
    cost: dict[Node, int] = {}
    again: dict[Node, int] = {}
    operands: dict[Node, list[Node]] = {}
    given: list[Node] = []
    todo = list(needed)
    inputs = _memory_of_inputs(needed)
    while todo:
        node = todo.pop()
        if node in cost:
            continue
        cost[node] = round(_to_keep(node, outputs) * 16) + (2 if node.op == "input" else 3 if node in outputs else 4)
        again[node] = round(_to_repeat(node, worth) * 16)
        allowed = (
            node.op in ("input", *(("kept",) if not twice else ()))
            or node in outputs
            or (not twice and node.is_tensor and _memory(node) not in inputs)
        )
        if not allowed:
            cost[node] = _NEVER
        inner = [] if node.op in (*know.OUTSIDE, "kept") else [n for n in node.operands if n.is_tensor or n.is_parts]
        operands[node] = inner
        if node.op == "input" or _kept(node, twice=twice):
            given.append(node)
        todo += inner
    saved = cheapest_to_keep(cost, operands, given, needed, again)
    if any(cost[n] >= _NEVER for n in saved):
        raise Refused("backward needs a value that only forward knows.")
    repeated: set[Node] = set()
    todo = [n for n in needed if n not in saved]
    while todo:
        node = todo.pop()
        if node not in repeated and node not in saved:
            repeated.add(node)
            todo += operands[node]
    order = lambda nodes: tuple(sorted(nodes, key=lambda n: n.serial))  # noqa: E731
    return Plan(order(saved), order(repeated), twice)


def _memory_of_inputs(needed: set[Node]) -> set[int]:
    """Where the inputs lie. A view of one cannot be an output that has no gradient (torch 2.13 leaves its requires_grad
    on), and keeping it keeps the whole input alive."""
    graph = next(iter(needed)).graph if needed else None
    leaves = [n for n in graph.pool.values() if n.op == "input" and n.is_tensor] if graph is not None else []
    return {_memory(n) for n in leaves} - {0}


def _memory(node: Node) -> int:
    return int(node.value.untyped_storage().data_ptr()) if node.is_tensor else 0


def _kept(node: Node, *, twice: bool) -> bool:
    """Must this be kept rather than computed again? Draws always; what is expensive, if intermediates may be kept."""
    if draws(node) or node.op == "kept":
        return True
    if node.op == "loop":
        return not twice
    operation = node.graph.operations.get(node.op)
    if twice or operation is None:
        return False
    return operation.kind == "x"


def draws(node: Node) -> bool:
    return node.op in ("rand_like", "randn_like") or (
        node.op == "create" and node.args[0] in ("torch.rand", "torch.randn")
    )


def _costly(plan: Plan) -> bool:
    operations = plan.again[0].graph.operations if plan.again else {}
    return any(n.op == "loop" or (n.op in operations and operations[n.op].kind == "x") for n in plan.again)

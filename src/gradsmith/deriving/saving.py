"""What backward keeps: the fewest bytes from which everything it needs can be computed again (a minimum cut)."""

from __future__ import annotations

from dataclasses import dataclass

from gradsmith.deriving.node import OUTSIDE, Node, nodes_in
from gradsmith.deriving.refusal import Refused
from gradsmith.recurrent.mincut import cheapest_to_keep

_NEVER = 1 << 50


@dataclass(frozen=True)
class Plan:
    """`saved` in the order they were made; `again` is computed a second time in backward."""

    saved: tuple[Node, ...]
    again: tuple[Node, ...]
    twice: bool  # only inputs and outputs are saved, so backward can be differentiated

    @property
    def nbytes(self) -> int:
        return sum(n.nbytes for n in self.saved)


def planned(gradients: list[Node], outputs: list[Node], *, fast: bool, also: frozenset[Node] = frozenset()) -> Plan:
    """The plan of least bytes; at equal bytes the one that can be differentiated again."""
    needed = _needed(gradients) | also
    plans = []
    for twice in (True, False):
        try:
            plans.append(_plan(needed, outputs, twice=twice, fast=fast))
        except Refused:
            if not twice:
                raise
    careful = plans[0]
    cheapest = plans[-1]
    if fast:
        return careful if _work(careful) <= _work(cheapest) else cheapest
    if careful.twice and not _costly(careful) and careful.nbytes <= cheapest.nbytes:
        return careful
    return cheapest


def _work(plan: Plan) -> int:
    """Bytes that backward computes again; views cost nothing."""
    operations = plan.again[0].graph.operations if plan.again else {}
    return sum(n.nbytes for n in plan.again if n.op not in operations or operations[n.op].kind != "v")


def _needed(gradients: list[Node]) -> set[Node]:
    """The tensors of forward that backward reads."""
    found: set[Node] = set()
    seen: set[Node] = set()
    todo = list(gradients)
    while todo:
        node = todo.pop()
        if node in seen or node.op in OUTSIDE:
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


def _plan(needed: set[Node], outputs: list[Node], *, twice: bool, fast: bool) -> Plan:
    cost: dict[Node, int] = {}
    operands: dict[Node, list[Node]] = {}
    given: list[Node] = []
    todo = list(needed)
    inputs = _memory_of_inputs(needed)
    while todo:
        node = todo.pop()
        if node in cost:
            continue
        cost[node] = node.nbytes * 16 + (2 if node.op == "input" else 3 if node in outputs else 4)
        allowed = (
            node.op in ("input", *(("kept",) if not twice else ()))
            or node in outputs
            or (not twice and node.is_tensor and _memory(node) not in inputs)
        )
        if not allowed:
            cost[node] = _NEVER
        inner = [] if node.op in (*OUTSIDE, "kept") else [n for n in node.operands if n.is_tensor or n.is_parts]
        operands[node] = inner
        if node.op == "input" or _kept(node, inner, twice=twice, fast=fast):
            given.append(node)
        todo += inner
    saved = cheapest_to_keep(cost, operands, given, needed)
    if any(cost[n] >= _NEVER for n in saved):
        raise Refused("backward needs a value that only forward knows.")
    again: set[Node] = set()
    todo = [n for n in needed if n not in saved]
    while todo:
        node = todo.pop()
        if node not in again and node not in saved:
            again.add(node)
            todo += operands[node]
    order = lambda nodes: tuple(sorted(nodes, key=lambda n: n.serial))  # noqa: E731
    return Plan(order(saved), order(again), twice)


def _memory_of_inputs(needed: set[Node]) -> set[int]:
    """Where the inputs lie. A view of one cannot be an output that has no gradient (torch 2.13 leaves its requires_grad
    on), and keeping it keeps the whole input alive."""
    graph = next(iter(needed)).graph if needed else None
    leaves = [n for n in graph.pool.values() if n.op == "input" and n.is_tensor] if graph is not None else []
    return {_memory(n) for n in leaves} - {0}


def _memory(node: Node) -> int:
    return int(node.value.untyped_storage().data_ptr()) if node.is_tensor else 0


def _kept(node: Node, inner: list[Node], *, twice: bool, fast: bool) -> bool:
    """Must this be kept rather than computed again? Draws always; what is expensive or small, if intermediates may be kept."""
    if draws(node) or node.op == "kept":
        return True
    if node.op == "loop":
        return not twice
    operation = node.graph.operations.get(node.op)
    if twice or operation is None:
        return False
    if fast:
        return operation.kind in "xsro" or (operation.kind == "e" and node.op not in ("neg", "add", "sub", "to", "mul"))
    return operation.kind == "x" or (operation.kind == "r" and bool(inner) and node.nbytes * 8 <= inner[0].nbytes)


def draws(node: Node) -> bool:
    return node.op in ("rand_like", "randn_like") or (
        node.op == "create" and node.args[0] in ("torch.rand", "torch.randn")
    )


def _costly(plan: Plan) -> bool:
    operations = plan.again[0].graph.operations if plan.again else {}
    return any(n.op == "loop" or (n.op in operations and operations[n.op].kind == "x") for n in plan.again)

"""What reading and writing by the same index make of each other, and which indices never meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsmith.deriving.node import Node, is_number, key_of, value_of

if TYPE_CHECKING:
    from gradsmith.deriving.graph import Graph


def simpler(graph: Graph, op: str, args: tuple[Any, ...]) -> Any:
    """The value that `x[index]` or `x[index] = value` is already, if it is one."""
    base, index = args[0], as_tuple(args[1])
    if op == "assign" and isinstance(base, Node):
        if _reads(args[2], base, index):
            return base
        added = _added(base, index, args[2])
        if added is not None:
            return graph.make("placed", base, ((index, added),))
    if not isinstance(base, Node) or base.op not in ("assign", "placed"):
        return None
    if base.op == "placed":
        away = op == "getitem" and all(apart(index, as_tuple(i)) for i, _ in base.args[1])
        return graph.make("getitem", base.args[0], args[1]) if away else None
    whole, written, value = base.args
    if op == "getitem":
        if equal(index, written) and isinstance(value, Node) and value.is_tensor:
            return value if value.value.shape == base.value[value_of(index)].shape else None
        return graph.make("getitem", whole, args[1]) if apart(index, as_tuple(written)) else None
    if equal(index, written):  # written twice: the last counts
        return base if args[2] is value else graph.make("assign", whole, args[1], args[2])
    return None


def _added(base: Node, index: tuple[Any, ...], value: Any) -> Any:
    """What `x[index] = x[index] + value` adds."""
    if not isinstance(value, Node) or value.op not in ("add", "sub") or value.back:
        return None
    old, more = value.args
    if _reads(old, base, index):
        return base.graph.neg(more) if value.op == "sub" else more
    return None


def _reads(value: Any, base: Node, index: tuple[Any, ...]) -> bool:
    return isinstance(value, Node) and value.op == "getitem" and value.args[0] is base and equal(index, value.args[1])


def as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def equal(a: Any, b: Any) -> bool:
    return _plain_enough(a) and bool(key_of(as_tuple(a)) == key_of(as_tuple(b)))


def _plain_enough(index: tuple[Any, ...]) -> bool:
    return not any(i is None or (isinstance(i, Node) and i.is_tensor) for i in index)


def apart(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Do the two never touch the same element? Only where the numbers in the source say so."""
    if not _plain_enough(a) or not _plain_enough(b):
        return False
    ends = any(i is Ellipsis for i in a), any(i is Ellipsis for i in b)
    if ends == (False, False):
        return any(_disjoint(p, q) for p, q in zip(a, b))
    if a[0] is Ellipsis and b[0] is Ellipsis:
        return any(_disjoint(p, q) for p, q in zip(reversed(a[1:]), reversed(b[1:])))
    return False


def _disjoint(p: Any, q: Any) -> bool:
    if _strided(p) and _strided(q) and p.step == q.step:
        return bool(((p.start or 0) - (q.start or 0)) % p.step)
    (low, high), (start, stop) = _span(p), _span(q)
    if low is None or start is None:
        return False
    return (high is not None and high <= start) or (stop is not None and stop <= low)


def _strided(part: Any) -> bool:
    """`1::2` and its like, in numbers of the source."""
    plain = isinstance(part, slice) and isinstance(part.step, int) and part.step > 1
    return plain and not isinstance(part.start, Node) and (part.start or 0) >= 0


def _span(part: Any) -> tuple[int | None, int | None]:
    """From where to where; (None, None) where that depends on a size."""
    if is_number(part) and isinstance(part, int) and part >= 0:
        return part, part + 1
    if isinstance(part, slice) and part.step in (None, 1) and not isinstance(part.start, Node):
        start = part.start or 0
        stop = part.stop
        if start >= 0 and (stop is None or (is_number(stop) and stop >= 0)):
            return start, stop
    return None, None


def consecutive(indices: list[Any]) -> tuple[list[int], int] | None:
    """(order, dimension), where the indices are slices `:a`, `a:b`, ..., `z:` of one dimension, and whole in all others."""
    tuples = [as_tuple(i) for i in indices]
    length = len(tuples[0])
    if any(len(t) != length or not all(isinstance(p, slice) or p is Ellipsis for p in t) for t in tuples):
        return None
    cut = [
        i for i in range(length) if any(key_of(t[i]) != key_of(slice(None)) and t[i] is not Ellipsis for t in tuples)
    ]
    dots = [i for i in range(length) if any(t[i] is Ellipsis for t in tuples)]
    if len(cut) != 1 or any(t[i] is not Ellipsis for i in dots for t in tuples):
        return None
    (at,) = cut
    left = {key_of(t[at].start): i for i, t in enumerate(tuples)}
    order: list[int] = []
    end: Any = None
    while len(order) < len(tuples):
        number = left.get(key_of(end)) if order or end is None else None
        if number is None or number in order or tuples[number][at].step not in (None, 1):
            return None
        order.append(number)
        end = tuples[number][at].stop
        if end is None:
            break
    if len(order) != len(tuples) or end is not None:
        return None
    return order, at - length if any(i < at for i in dots) else at

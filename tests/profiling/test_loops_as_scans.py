"""A loop over time, whatever its form, is run by `gs.scan` in its place and gives the same; other loops are left alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs
from gradsmith.lab.subject.target import resolve
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.layers import scan_ways
from gradsmith.profiling.remedies import equivalent
from gradsmith.source.stepped import with_scan

W = torch.randn(4, 4, requires_grad=True)


def batch_first_in_a_list(x: Tensor, h: Tensor) -> Tensor:
    out = []
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] + h @ W)
        out.append(h)
    return torch.stack(out, dim=1)


def time_last_in_slots(x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    x = x.transpose(1, 2)
    out = torch.empty_like(x)
    for t in range(x.size(-1)):
        h = torch.tanh(x[..., t] + h @ W)
        out[:, :, t] = 2 * h
    return out, h


def unbound_with_two_states_and_the_last_output(x: Tensor, h: Tensor) -> Tensor:
    c = torch.zeros_like(h)
    for x_t in torch.unbind(x, dim=1):
        c += torch.tanh(x_t + h @ W)
        h = torch.tanh(c)
        y = h * x_t
    return y + c


def zipped(x: Tensor, h: Tensor) -> Tensor:
    gate = torch.sigmoid(x)
    states = []
    for now, a in zip(x.unbind(1), gate.unbind(1)):
        h = a * h + (1 - a) * now
        states.append(h.square())
    return torch.cat(states, 1)


def counted_but_not_used(x: Tensor, h: Tensor) -> Tensor:
    x = x.transpose(0, 1)
    for _, now in enumerate(x):
        h = torch.relu(h @ W + now)
    return h


def a_part_of_the_steps(x: Tensor, h: Tensor) -> Tensor:
    out = []
    for t in range(5):
        h = torch.tanh(x[:, t, :] + h @ W)
        out.append(h)
    return torch.stack(out)


def the_step_before(x: Tensor, h: Tensor) -> Tensor:
    for t in range(1, x.shape[1]):
        h = torch.tanh(x[:, t] - x[:, t - 1] + h @ W)
    return h


def the_counter_is_a_number(x: Tensor, h: Tensor) -> Tensor:
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] / (t + 1) + h @ W)
    return h


def ends_early(x: Tensor, h: Tensor) -> Tensor:
    for t in range(x.shape[1]):
        if h.sum() > 100:
            break
        h = torch.tanh(x[:, t] + h @ W)
    return h


def no_state(x: Tensor, h: Tensor) -> Tensor:
    out = []
    for t in range(x.shape[1]):
        out.append(torch.tanh(x[:, t] @ W))
    return torch.stack(out, 1) + h[:, None]


def reads_what_it_filled(x: Tensor, h: Tensor) -> Tensor:
    out = [h]
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] + out[-1] @ W)
        out.append(h)
    return torch.stack(out)


TIME: list[Callable[..., Any]] = [
    batch_first_in_a_list, time_last_in_slots, unbound_with_two_states_and_the_last_output, zipped, counted_but_not_used,
    a_part_of_the_steps,
]  # fmt: skip
OTHER: list[Callable[..., Any]] = [
    the_step_before, the_counter_is_a_number, ends_early, no_state, reads_what_it_filled,
]  # fmt: skip


def bench_of(subject: Any, *inputs: Any) -> Bench:
    return Bench.of(resolve(subject), inputs, {})


@pytest.mark.parametrize("function", TIME, ids=lambda f: f.__name__)
def test_a_loop_over_time_becomes_a_scan(function: Callable[..., Any]) -> None:
    bench = bench_of(function, torch.randn(3, 6, 4, requires_grad=True), torch.zeros(3, 4))
    ((name, way),) = scan_ways(bench)
    assert name == "gs.scan of its loop"
    assert equivalent(bench, bench.with_function(way))


@pytest.mark.parametrize("function", OTHER, ids=lambda f: f.__name__)
def test_other_loops_do_not(function: Callable[..., Any]) -> None:
    assert scan_ways(bench_of(function, torch.randn(3, 6, 4, requires_grad=True), torch.zeros(3, 4))) == []


class Leaky(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.rest = nn.Linear(4, 5), nn.ModuleList([nn.Linear(5, 5), nn.Tanh()])

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 5)
        for part in self.rest:
            h = part(h)
        states = []
        for t in range(x.shape[1]):
            h = 0.9 * h + 0.1 * torch.tanh(self.inner(x[:, t]))
            states.append(h)
        return torch.stack(states, 1)


def test_the_loop_of_a_module_is_found_behind_one_over_its_parts() -> None:
    bench = bench_of(Leaky(), torch.randn(3, 6, 4, requires_grad=True))
    ((_, way),) = scan_ways(bench)
    assert equivalent(bench, bench.with_function(way))


def test_no_scan_is_offered_that_would_run_as_a_loop() -> None:
    def looks(x: Tensor, h: Tensor) -> Tensor:
        for now in x.unbind(1):
            h = torch.tanh(now + h) if bool(h.sum() > 0) else torch.relu(now - h)
        return h

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scan_ways(bench_of(looks, torch.randn(3, 6, 4), torch.zeros(3, 4))) == []


def test_what_is_no_function_has_no_loop() -> None:
    assert list(with_scan("lambda x: x")) == list(with_scan("def f(:")) == []


def test_lint_offers_scan_where_the_length_is_that_of_the_tensor() -> None:
    source = """
from torch import nn
import torch

class Layer(nn.Module):
    def forward(self, x):
        h = x.new_zeros(SIZE)
        for i in range(len(x)):
            h = torch.tanh(x[i] + h)
        return h
"""
    (found,) = gs.lint_source(source.replace("SIZE", "x.shape[1:]"), select=["time-index"]).findings
    assert "gs.scan(step, x, state)" in (found.advice or "")
    listed = source.replace("x.new_zeros(SIZE)", "torch.zeros(3)")
    assert gs.lint_source(listed, select=["time-index"]).findings == []

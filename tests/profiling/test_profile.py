"""What a profile says of subjects whose cost is known exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs
from gradsmith.lab import resolve
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.export import chrome_trace, flame
from gradsmith.profiling.growth import _exponent
from gradsmith.profiling.step import user_functions


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = torch.ones(16)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad_output


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        raise ValueError("no gradient today")


class Scribble(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.detach().add_(1)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * 2


def cube() -> gs.Profile:
    return gs.profile(Cube, torch.randn(8, 4, requires_grad=True), budget=0.3)


def test_operations_are_counted_and_placed_on_lines_of_forward_and_backward() -> None:
    profile = cube()
    assert profile.forward_ops == 3  # ones, and two products
    assert profile.backward_ops == 3
    source = Path(__file__).read_text().splitlines()
    placed = {(use.op, use.phase, source[use.line - 1].strip()) for use in profile.ops if use.line}
    assert ("mul", "forward", "return x * x * x") in placed
    assert ("mul", "backward", "return 3 * x * x * grad_output") in placed


def test_saved_bytes_count_saved_tensors_and_ctx_attributes() -> None:
    profile = cube()
    assert profile.saved_bytes == 8 * 4 * 4 + 16 * 4
    assert {(s.how, s.attribute, s.role) for s in profile.saved} == {
        ("saved tensor", "", "input"),
        ("ctx attribute", "scale", "intermediate"),
    }


def test_a_tensor_saved_twice_counts_once() -> None:
    profile = gs.profile(lambda x: (x * x).exp(), torch.randn(32, requires_grad=True), budget=0.2)
    assert len(profile.saved) == 3  # x twice for the product, and the result of exp
    assert profile.saved_bytes == 2 * 32 * 4


def test_peak_is_at_least_what_is_alive_at_once() -> None:
    profile = gs.profile(torch.exp, torch.randn(1000, requires_grad=True), budget=0.2)
    assert 3 * 4000 <= profile.peak_bytes <= 5 * 4000  # input, output, grad_output, gradient


def test_shares_add_up_to_the_time() -> None:
    profile = cube()
    assert sum(profile.spent) == pytest.approx(profile.total_s, rel=1e-6)
    assert sum(use.share for use in profile.ops) == pytest.approx(1.0, rel=1e-6)


def test_a_failing_backward_keeps_what_forward_showed() -> None:
    profile = gs.profile(Broken, torch.randn(4, requires_grad=True), budget=0.2)
    assert profile.forward_s > 0
    assert profile.backward_s == 0
    assert profile.forward_ops == 1
    assert any("no gradient today" in f.message for f in profile.findings)
    assert "backward raised; forward was measured alone" in profile.notes


def test_a_failing_forward_is_said_and_nothing_is_invented() -> None:
    def fails(x: Tensor) -> Tensor:
        raise RuntimeError("wrong shape")

    profile = gs.profile(fails, torch.randn(4, requires_grad=True), budget=0.2)
    assert profile.forward_s == 0
    assert "forward-raised" in {f.rule for f in profile.findings}
    assert "wrong shape" in str(profile)


def test_side_effects_on_inputs_do_not_add_up() -> None:
    x = torch.zeros(4, requires_grad=True)
    gs.profile(Scribble, x, budget=0.2)
    assert torch.equal(x, torch.zeros(4))


def test_grad_output_is_not_the_input_that_was_drawn_with_the_same_seed() -> None:
    torch.manual_seed(0)
    x = torch.randn(8, 4, requires_grad=True)
    call = Bench.of(resolve(torch.exp), (x,), {}, seed=0).first()
    assert call.grad_outputs[0] is not None and not torch.equal(call.grad_outputs[0], x)


def test_buffers_of_a_module_stay_as_they_are() -> None:
    layer = nn.BatchNorm1d(3)
    gs.profile(layer, torch.randn(8, 3, requires_grad=True), budget=0.2)
    assert int(layer.num_batches_tracked or 0) == 0
    assert layer.weight.grad is None


def test_a_subject_slower_than_the_budget_is_measured_and_said() -> None:
    said: list[str] = []

    def heavy(x: Tensor) -> Tensor:
        for _ in range(200):
            x = x @ x / x.norm()
        return x

    profile = gs.profile(heavy, torch.randn(64, 64, requires_grad=True), budget=1e-3, on_progress=said.append)
    assert profile.forward_s > 0
    assert profile.rounds >= 1
    assert any("takes" in text and "this will take about" in text for text in said)
    assert any("other sizes were left out" in note for note in profile.notes)


def test_growth_finds_the_dimension_a_loop_runs_over() -> None:
    def rows(x: Tensor) -> Tensor:
        return torch.stack([x[i] * 2 for i in range(x.shape[0])])

    profile = gs.profile(rows, torch.randn(6, 5, requires_grad=True), budget=2.0)
    by_label = {g.label: g for g in profile.growth}
    assert by_label["x.shape[0]"].exponent("forward_ops") == pytest.approx(1.0, abs=0.05)
    assert by_label["x.shape[1]"].exponent("forward_ops") == 0.0
    assert by_label["x.shape[0]"].exponent("backward_bytes") > 1.6


@pytest.mark.parametrize(
    ("sizes", "values", "power"),
    [
        ([2, 4, 8], [7, 9, 13], 1.0),  # 5 + n
        ([2, 4, 8], [5, 17, 65], 2.0),  # 1 + n^2
        ([2, 4, 6], [5, 17, 37], 2.0),
        ([2, 4, 8], [3, 3, 3], 0.0),
    ],
)
def test_a_constant_part_does_not_blur_the_exponent(sizes: list[int], values: list[float], power: float) -> None:
    assert _exponent(sizes, values) == pytest.approx(power, abs=0.01)


@pytest.mark.parametrize("real", [False, True], ids=["MemoryError", "torch's own"])
def test_out_of_memory_at_a_larger_size_keeps_the_smaller_ones(real: bool) -> None:
    def limited(x: Tensor) -> Tensor:
        if x.shape[0] > 10:
            if not real:
                raise MemoryError
            torch.empty(1 << 55)  # torch refuses: more than any address space
        return x * 2

    profile = gs.profile(limited, torch.randn(4, requires_grad=True), budget=1.0)
    (growth,) = profile.growth
    assert growth.stopped == "out of memory at x.shape[0] = 16"
    assert len(growth.recordings) == 2 and profile.forward_s > 0
    assert growth.stopped in profile.notes


def test_json_and_trace_are_what_viewers_expect(tmp_path: Path) -> None:
    profile = cube()
    data = json.loads(profile.to_json())
    assert data["schema"] == 1
    assert data["memory"]["saved_bytes"] == profile.saved_bytes
    trace = chrome_trace(profile)
    work = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(work) == len(profile.recording.events)
    assert all(e["dur"] >= 0 and {"name", "ts", "pid", "tid", "args"} <= set(e) for e in work)
    profile.save(tmp_path / "cube.trace.json")
    assert json.loads((tmp_path / "cube.trace.json").read_text())["traceEvents"]
    root = flame(profile)
    assert root["value"] == pytest.approx(sum(c["value"] for c in root["children"]))


def test_a_step_ranks_the_functions_in_it_and_leaves_no_trace() -> None:
    before = {cls: dict(vars(cls)) for cls in user_functions()}
    x = torch.randn(4, requires_grad=True)
    with gs.profile_step() as step:
        (Cube.apply(x) + Cube.apply(x)).sum().backward()
    assert [(use.name, use.calls) for use in step.functions] == [("Cube", 2)]
    assert "Cube x2" in str(step)
    for cls, own in before.items():
        assert dict(vars(cls)) == own


def test_the_table_names_the_line(load: Callable[[str], ModuleType]) -> None:
    module = load(
        "import torch\n\n\ndef slow(x):\n    out = []\n    for i in range(x.shape[0]):\n        out.append(x[i] * 2)\n"
        "    return torch.stack(out)\n"
    )
    text = str(gs.profile(module.slow, torch.randn(32, 4, requires_grad=True), budget=2.0))
    name = Path(str(module.__file__)).name
    assert f"at {name}:6: a Python" in " ".join(text.split())
    assert "where the time goes" in text

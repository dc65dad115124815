"""Causes as users write them; nothing here depends on how long anything takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gradsmith as gs
from gradsmith.findings import Finding
from gradsmith.lab.subject.target import resolve
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.layers import matching
from gradsmith.profiling.recorder import record
from gradsmith.profiling.roots import absorbed


def found(profile: gs.Profile, rule: str) -> list[Finding]:
    every = [g for f in profile.findings for g in (f, *f.symptoms)]
    return [f for f in every if f.rule == rule]


class Stepped(nn.Module):
    """nn.LSTMCell over a sequence; `between` is what nn.LSTM cannot do."""

    def __init__(self, between: bool, batch_first: bool = False) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.between, self.batch_first = between, batch_first

    def forward(self, x: Tensor) -> Tensor:
        steps = x.unbind(1 if self.batch_first else 0)
        h = c = x.new_zeros(steps[0].shape[0], 4)
        out = []
        for now in steps:
            h, c = self.cell(now, (h, c))
            h = h.clamp(-0.5, 0.5) if self.between else h
            out.append(h)
        return torch.stack(out, dim=1 if self.batch_first else 0)


def test_the_product_inside_a_built_in_cell_is_on_the_users_line_with_advice_the_user_can_follow() -> None:
    profile = gs.profile(Stepped(between=True), torch.randn(6, 2, 3, requires_grad=True), budget=1.0, growth=False)
    (finding,) = found(profile, "unhoisted-projection")
    assert "self.cell(now, (h, c))" in finding.snippet
    assert finding.message.startswith("nn.LSTMCell projects its input step by step")
    assert "nn.LSTM" in finding.advice and "gs.Recurrent(cell)" in finding.advice


def test_where_the_built_in_layer_fits_the_cell_has_no_finding_of_its_own() -> None:
    profile = gs.profile(Stepped(between=False), torch.randn(6, 2, 3, requires_grad=True), budget=1.0, growth=False)
    assert [f.rule for f in profile.findings if f.rule in ("builtin-cell", "unhoisted-projection")] == ["builtin-cell"]
    (layer,) = found(profile, "builtin-cell")
    assert "unhoisted-projection" in {s.rule for s in layer.symptoms}


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_layer_is_recognised_whichever_dimension_is_time(batch_first: bool) -> None:
    profile = gs.profile(
        Stepped(False, batch_first), torch.randn(6, 2, 3, requires_grad=True), budget=0.5, growth=False, select=["run"]
    )
    assert profile.bench is not None
    way = matching(profile.bench)
    assert way is not None and ("batch_first" in way[0]) == batch_first


def test_what_goes_wrong_inside_an_element_loop_is_its_symptom() -> None:
    loop = _finding("element-loop", 10, gain=9.0, last_line=12)
    inside, outside = _finding("slot-write", 11, gain=1.2), _finding("slot-write", 20, gain=1.2)
    worse = _finding("cat-in-loop", 12, gain=20.0)
    root, *rest = absorbed([loop, inside, outside, worse])
    assert root.symptoms == (inside,)
    assert rest == [outside, worse]


def test_a_remark_about_a_loop_hides_nothing() -> None:
    remark = _finding("element-loop", 10, gain=9.0, last_line=12, severity="info")
    inside = _finding("host-sync", 11, gain=1.2)
    assert absorbed([remark, inside]) == [remark, inside]


def test_a_loop_over_heads_is_an_element_loop_though_no_size_of_the_input_says_how_many() -> None:
    def per_head(x: Tensor, heads: int = 8) -> Tensor:
        d = x.shape[-1] // heads
        return torch.cat([torch.softmax(x[:, h * d : (h + 1) * d], dim=-1) for h in range(heads)], dim=-1)

    profile = gs.profile(per_head, torch.randn(4, 32, requires_grad=True), budget=1.0)
    (finding,) = found(profile, "element-loop")
    assert "range(heads)" in finding.message


def test_parts_of_different_size_are_no_element_loop() -> None:
    def pyramid(x: Tensor) -> Tensor:
        return torch.stack([torch.tanh(x[:, : 2**k]).sum() for k in range(5)])

    profile = gs.profile(pyramid, torch.randn(4, 32, requires_grad=True), budget=1.0)
    assert not found(profile, "element-loop")


def test_operands_spread_out_inside_a_function_of_torch_are_seen() -> None:
    def similarities(a: Tensor, b: Tensor) -> Tensor:
        return F.cosine_similarity(a.unsqueeze(1), b.unsqueeze(0), dim=-1)

    a, b = torch.randn(24, 16, requires_grad=True), torch.randn(24, 16, requires_grad=True)
    (finding,) = found(gs.profile(similarities, a, b, budget=1.0, growth=False), "materialised-broadcast")
    assert "(24, 24, 16)" in finding.message


RECOMPUTED = """
import torch


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        p = torch.softmax(x, dim=1)
        ctx.save_for_backward(x)
        ctx.scale = scale
        return (p * scale).sum(dim=1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        p = torch.softmax(x, dim=1)
        g = grad_output[:, None] * ctx.scale * p{extra}
        return g - p * g.sum(dim=1, keepdim=True), None
"""


def test_an_input_saved_only_to_compute_the_same_again(load: Callable[[str], ModuleType]) -> None:
    module = load(RECOMPUTED.format(extra=""))
    profile = gs.profile(module.Weighted, torch.randn(16, 32, requires_grad=True), 2.0, budget=0.5, growth=False)
    (finding,) = found(profile, "recomputed-saved")
    assert "x is saved for nothing else" in finding.message
    assert "instead of x" in finding.advice


def test_an_input_that_backward_also_needs_itself_is_a_fair_trade(load: Callable[[str], ModuleType]) -> None:
    module = load(RECOMPUTED.format(extra=" + 0 * x"))
    profile = gs.profile(module.Weighted, torch.randn(16, 32, requires_grad=True), 2.0, budget=0.5, growth=False)
    assert not found(profile, "recomputed-saved")


def test_time_index_names_the_tensor_that_takes_a_gradient() -> None:
    def picked(x: Tensor, order: Tensor) -> Tensor:
        state = torch.zeros_like(x[0])
        for t in range(x.shape[0]):
            state = torch.tanh(state * order[t] + x[t])
        return state

    profile = gs.profile(picked, torch.randn(8, 4, requires_grad=True), torch.arange(8.0), budget=0.5, growth=False)
    (finding,) = found(profile, "time-index")
    assert "every step that indexes x at" in finding.message


def _finding(rule: str, line: int, gain: float, severity: str = "warning", **evidence: object) -> Finding:
    return Finding(
        "it is slow.",
        function="f",
        path="ops.py",
        line=line,
        rule=rule,
        severity=severity,  # type: ignore[arg-type]
        evidence={"predicted_gain": gain, **evidence},
    )


def test_putting_the_gradients_of_parts_together_goes_with_the_loop() -> None:
    def parts(x: Tensor) -> Tensor:
        return torch.stack([x[i].exp() for i in range(x.shape[0])])

    profile = gs.profile(parts, torch.randn(8, 4, requires_grad=True), budget=0.5, growth=False)
    events = profile.recording.events
    sums = [e for e in events if e.node.startswith("SelectBackward") and e.op.startswith("add")]
    assert sums  # autograd adds up eight gradients, each of the whole of x
    assert profile.together(sums) == 0
    assert profile.together([e for e in events if e.op == "exp"]) > 0


def test_a_loop_over_large_chunks_is_there_to_bound_memory() -> None:
    def chunked(q: Tensor, k: Tensor) -> Tensor:
        return torch.cat([torch.softmax(part @ k.t(), dim=-1) @ k for part in q.split(256)])

    q, k = torch.randn(1024, 32, requires_grad=True), torch.randn(512, 32, requires_grad=True)
    profile = gs.profile(chunked, q, k, budget=2.0)
    assert not [f for f in found(profile, "element-loop") if f.severity == "warning"]


def test_a_run_that_had_to_wait_for_the_processor_is_watched_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the clock runs away while nothing is done: the loop is seen whole all the same."""
    bench = Bench.of(resolve(Stepped(between=True)), (torch.randn(6, 2, 3, requires_grad=True),), {})
    seconds = itertools.count(step=3)
    monkeypatch.setattr("gradsmith.lab.process.device.clock", lambda: lambda: float(next(seconds)))
    assert record(bench, 100.0).stopped == ""
    assert next(seconds) > 100
    assert record(bench, 1e-9).stopped == "the time was up"

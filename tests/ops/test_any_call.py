"""Any shape, layout, subset of gradients and number of threads: the values and gradients of plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from gradsmith import ops

Op = Callable[..., Tensor]
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """An op beside what it stands for, on float64 inputs; which of them require grad, and on how many threads."""

    name: str
    ours: Op
    plain: Op
    inputs: list[Tensor]
    asked: list[bool]
    threads: int

    def leaves(self) -> list[Tensor]:
        return [x.detach().requires_grad_(asked) for x, asked in zip(self.inputs, self.asked)]


PAIRS: dict[str, tuple[Op, Op, Callable[[Sizes, int], list[Sizes]]]] = {
    "rms_norm": (lambda x, w: ops.rms_norm(x, w.shape[0], w), lambda x, w: F.rms_norm(x, (w.shape[0],), w), lambda s, d: [(*s, d), (d,)]),
    "layer_norm": (lambda x, w, b: ops.layer_norm(x, w.shape[0], w, b), lambda x, w, b: F.layer_norm(x, (w.shape[0],), w, b), lambda s, d: [(*s, d), (d,), (d,)]),
    "swish": (ops.swish, lambda x, b: x * torch.sigmoid(b * x), lambda s, d: [(*s, d), ()]),
    "swish, each feature": (ops.swish, lambda x, b: x * torch.sigmoid(b * x), lambda s, d: [(*s, d), (d,)]),
    "logsumexp": (ops.logsumexp, lambda x: torch.logsumexp(x, -1), lambda s, d: [(*s, d)]),
    "logsumexp, first": (lambda x: ops.logsumexp(x, 0, True), lambda x: torch.logsumexp(x, 0, True), lambda s, d: [(*s, d)]),
    "swiglu": (ops.swiglu, lambda a, b: F.silu(a) * b, lambda s, d: [(*s, d), (*s, d)]),
    "linear_relu": (ops.linear_relu, lambda x, w, b: F.linear(x, w, b).relu(), lambda s, d: [(*s, d), (5, d), (5,)]),
}  # fmt: skip


def laid_out(x: Tensor, layout: str) -> Tensor:
    """The same values (the same row, if expanded) elsewhere in memory, between numbers that nobody must read."""
    if layout == "every other" and x.dim():
        return torch.stack([x, torch.full_like(x, torch.nan)], -1)[..., 0]
    if layout == "transposed" and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "inside" and x.dim():
        edge = torch.full_like(x[:1], torch.nan)
        return torch.cat([edge, x, edge])[1:-1]
    return x[:1].expand(x.shape) if layout == "expanded" and x.dim() else x


LAYOUTS = st.sampled_from(["contiguous", "every other", "transposed", "inside", "expanded"])


@st.composite
def calls(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from(sorted(PAIRS)))
    ours, plain, shapes = PAIRS[name]
    lead = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 17]), max_size=3)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    drawn = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes(lead, draw(st.integers(1, 70)))]
    return _with_gradients(draw, name, ours, plain, drawn)


def _with_gradients(draw: st.DrawFn, name: str, ours: Op, plain: Op, drawn: list[Tensor]) -> Call:
    inputs = [laid_out(x, draw(LAYOUTS)) for x in drawn]
    asked = [draw(st.booleans()) for _ in inputs]
    return Call(name, ours, plain, inputs, asked if any(asked) else [True] * len(asked), draw(st.sampled_from([1, 2])))


@st.composite
def losses(draw: st.DrawFn) -> Call:
    rows, classes, features = draw(st.integers(1, 9)), draw(st.integers(1, 20)), draw(st.integers(1, 9))
    ignored = draw(st.sampled_from([-100, 0]))
    target = torch.tensor(draw(st.lists(st.sampled_from([ignored, *range(classes)]), min_size=rows, max_size=rows)))
    common: dict[str, Any] = {
        "ignore_index": ignored, "label_smoothing": draw(st.sampled_from([0.0, 0.2])),
        "reduction": draw(st.sampled_from(["mean", "sum", "none"])),
    }  # fmt: skip
    cap, chunk = draw(st.sampled_from([None, 3.0])), draw(st.sampled_from([None, 1, 2, 7]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    kinds = torch.rand(classes, generator=generator, dtype=torch.float64) + 0.1 if draw(st.booleans()) else None

    def ours(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops.linear_cross_entropy(x, w, target, b, class_weight=kinds, softcap=cap, chunk=chunk, **common)

    def plain(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        z = F.linear(x, w, b)
        return F.cross_entropy(z if cap is None else cap * torch.tanh(z / cap), target, kinds, **common)

    shapes = ((rows, features), (classes, features), (classes,))
    drawn = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    return _with_gradients(draw, "linear_cross_entropy", ours, plain, drawn)


def outcome(op: Op, call: Call, layout: str) -> tuple[Tensor, ...]:
    """The result, its gradients for a grad_output that lies somewhere, and the gradients of these."""
    leaves = call.leaves()
    wanted = [x for x in leaves if x.requires_grad]
    y = op(*leaves)
    grad = laid_out(torch.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape), layout)
    first = torch.autograd.grad(y, wanted, grad, retain_graph=True)
    again = torch.autograd.grad(y, wanted, grad, create_graph=True)
    torch.testing.assert_close(
        again, first, equal_nan=True, rtol=1e-7, atol=1e-8
    )  # with create_graph it is another way
    total = torch.stack([g.cos().sum() for g in again]).sum()
    if not total.requires_grad:  # linear in what is differentiated
        return (y.detach(), *first, *(torch.zeros_like(x) for x in wanted))
    return (y.detach(), *first, *torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True))


def agrees(call: Call, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("gradsmith.native.threads._WORTH_A_THREAD", 1)
        torch.set_num_threads(call.threads)
        ours, plain = outcome(call.ours, call, layout), outcome(call.plain, call, layout)
        torch.set_num_threads(1)
    torch.testing.assert_close(ours, plain, equal_nan=True, rtol=1e-6, atol=1e-7, msg=lambda m: f"{call.name}: {m}")


@given(call=calls(), layout=LAYOUTS)
@settings(max_examples=150)
def test_any_call_is_that_of_torch(call: Call, layout: str) -> None:
    agrees(call, layout, pytest.MonkeyPatch())


@given(call=losses(), layout=LAYOUTS)
@settings(max_examples=100)
def test_any_loss_is_that_of_torch(call: Call, layout: str) -> None:
    agrees(call, layout, pytest.MonkeyPatch())

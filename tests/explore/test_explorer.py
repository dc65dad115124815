"""Right not only at these inputs: classes of mistakes that an ordinary example hides, each beside the same code mended.

Every class stands for a mechanism; what is asserted is the kind of finding, the argument and the verdict.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradsmith as gs
from gradsmith.lab import Lab, Settings, resolve
from gradsmith.lab.explore.explorer import explored
from gradsmith.lab.subject.arguments import Arguments

RULES = ("wrong-gradient", "value-dependent", "option-dependent", "shape-dependent", "repeated-index", "assumes")


def randn(*shape: int) -> torch.Tensor:
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return made.requires_grad_()


def function(forward: Any, backward: Any) -> type[Function]:
    return type("Subject", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def said(fn: Any, *inputs: Any) -> list[tuple[str, str]]:
    report = gs.check(fn, *inputs, select=RULES)
    return [(f.rule, f.severity) for f in report.findings if f.severity in ("error", "warning")]


def branch(right: bool) -> type[Function]:
    """A branch on a norm that the example does not reach."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        norm = x.norm()
        return x / norm if norm > 20 else x.clone()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        norm = x.norm()
        if right and norm > 20:
            return g / norm - (g * x).sum() * x / norm**3
        return g.clone()

    return function(forward, backward)


def frozen_weight(right: bool) -> type[Function]:
    """A weight that is 1 in the example and that nobody asked a gradient for."""

    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * x * weight

    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return 2 * g * x * (weight if right else 1), None

    return function(forward, backward)


def transposed(right: bool) -> type[Function]:
    """A square example: the transposition does not show in the shapes, and a symmetric one not in the numbers."""

    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ (w.mT if right else w), x.mT @ g

    return function(forward, backward)


def counted(right: bool) -> type[Function]:
    """A batch of 1 in the example."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().mean()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x / (x.numel() if right else x.shape[1])

    return function(forward, backward)


def gathered(right: bool) -> type[Function]:
    """Ids that are all different in the example."""

    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = g.new_zeros(ctx.shape)
        if right:
            grad.index_add_(0, index, g)
        else:
            grad[index] = g
        return grad, None

    return function(forward, backward)


def masked(right: bool) -> type[Function]:
    """A mask that is True everywhere in the example."""

    def forward(ctx, x, mask):
        ctx.save_for_backward(x, mask)
        return torch.where(mask, x * x, torch.zeros_like(x))

    def backward(ctx, g):
        x, mask = ctx.saved_tensors
        return (2 * g * x * mask if right else 2 * g * x), None

    return function(forward, backward)


class Reduced(Function):
    """An option that the call leaves out."""

    @staticmethod
    def forward(ctx, x, reduction="sum"):
        ctx.save_for_backward(x)
        return x.square().mean() if reduction == "mean" else x.square().sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x, None


class ReducedMended(Function):
    @staticmethod
    def forward(ctx, x, reduction="sum"):
        ctx.save_for_backward(x)
        ctx.count = x.numel() if reduction == "mean" else 1
        return x.square().mean() if reduction == "mean" else x.square().sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x / ctx.count, None


def reduced(right: bool) -> type[Function]:
    return ReducedMended if right else Reduced


def started(right: bool) -> type[Function]:
    """A state that is zero in the example."""

    def forward(ctx, x, state):
        ctx.save_for_backward(x, state)
        return x * (x + state)

    def backward(ctx, g):
        x, state = ctx.saved_tensors
        return g * (2 * x + (state if right else 0)), g * x

    return function(forward, backward)


CASES = {
    "branch on a norm": (branch, lambda: (randn(4),), "value-dependent"),
    "a constant of ones": (frozen_weight, lambda: (randn(4), torch.ones(4, dtype=torch.float64)), "value-dependent"),
    "a batch of one": (counted, lambda: (randn(1, 4),), "shape-dependent"),
    "ids all different": (gathered, lambda: (randn(6, 3), torch.tensor([4, 0, 5])), "repeated-index"),
    "a mask all True": (masked, lambda: (randn(3, 4), torch.ones(3, 4, dtype=torch.bool)), "value-dependent"),
    "an option left out": (reduced, lambda: (randn(3, 4),), "option-dependent"),
    "a state of zeros": (
        started,
        lambda: (randn(4), torch.zeros(4, dtype=torch.float64).requires_grad_()),
        "value-dependent",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_ordinary_example_hides_is_named(name: str) -> None:
    make, inputs, rule = CASES[name]
    assert (rule, "error") in said(make(False), *inputs())


@pytest.mark.parametrize("name", CASES)
def test_the_same_code_mended_is_clean(name: str) -> None:
    make, inputs, _ = CASES[name]
    assert said(make(True), *inputs()) == []


def test_only_the_move_that_matters_is_left() -> None:
    lab = lab_of(reduced(False), randn(3, 4))
    (discovery,) = explored(lab).found
    assert [move.words() for move in discovery.trial.moves] == ["with `reduction='mean'`"]


def test_the_same_seed_finds_the_same() -> None:
    told = [
        [move.words() for d in explored(lab_of(branch(False), randn(4))).found for move in d.trial.moves] for _ in "12"
    ]
    assert told[0] == told[1] and told[0]


def test_nothing_of_the_users_is_changed() -> None:
    x, weight = randn(4), torch.ones(4, dtype=torch.float64)
    before, state = x.detach().clone(), torch.random.get_rng_state()
    gs.check(frozen_weight(False), x, weight, select=RULES)
    assert torch.equal(x.detach(), before) and bool((weight == 1).all()) and x.grad is None
    assert torch.equal(torch.random.get_rng_state(), state)


def lab_of(fn: Any, *inputs: Any) -> Lab:
    target = resolve(fn)
    return Lab(target, Arguments.of(inputs, {}, target.names), Settings())


class LogDet(torch.autograd.Function):
    """Right for symmetric matrices only; most matrices far from the example have no logarithm of a determinant."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.logdet(a)

    @staticmethod
    def backward(ctx, grad_output):
        (a,) = ctx.saved_tensors
        return grad_output * torch.linalg.inv(a)


def test_a_step_to_where_forward_is_nan_is_tried_nearer_and_a_made_tie_stays_in_its_domain() -> None:
    drawn = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    report = gs.check(LogDet, (drawn @ drawn.mT + torch.eye(3)).requires_grad_())
    assert "'a' is symmetric" in report.subjects[0].assumptions
    assert {f.rule for f in report.findings if f.severity != "info"} == {"assumes"}


def test_a_changed_loop_that_never_ends_costs_its_candidate_only() -> None:
    class Powers(Function):
        """1 + x + ... + x ** (n - 1); among the changes tried to its backward are loops without an end."""

        @staticmethod
        def forward(ctx, x, c):
            ctx.save_for_backward(x, c)
            return sum(a * x**k for k, a in enumerate(c))

        @staticmethod
        def backward(ctx, grad_output):
            x, c = ctx.saved_tensors
            slopes = [torch.zeros_like(x), torch.ones_like(x)]
            while len(slopes) < len(c):
                slopes.append(slopes[-1] * x)
            slope = sum(a * s for a, s in zip(c, slopes))
            return grad_output * slope, torch.stack([(grad_output * x**k).sum() for k in range(len(c))])

    report = gs.check(Powers, randn(5), randn(2), select=RULES)
    assert report.subjects[0].verdict == "refuted"
    assert [f.rule for f in report.findings if f.severity == "error"] == ["shape-dependent"]


def test_one_option_may_hide_what_another_does() -> None:
    def forward(ctx, x, shift=0, halved=False):
        ctx.shift, ctx.halved = shift, halved
        return x * (2 + shift) if not halved else x * (1 + shift / 2)

    def backward(ctx, g):
        return g * ((2 + ctx.shift) if not ctx.halved else 1), None, None

    report = gs.check(function(forward, backward), randn(3), select=RULES)
    (assumption,) = report.subjects[0].assumptions
    assert assumption.startswith("`halved=True` and `shift=") and assumption.endswith("never come together")


def test_a_size_that_only_has_to_be_large_enough_may_be_larger() -> None:
    def forward(ctx, q, k):
        if q.shape[0] > k.shape[0]:
            raise ValueError("fewer keys than queries")
        ctx.save_for_backward(q, k)
        return q @ k.mT

    def backward(ctx, g):
        q, k = ctx.saved_tensors
        return g @ k, g.tril(k.shape[0] - q.shape[0]).mT @ q + g.triu(1).mT @ q

    right_when_equal = gs.check(function(forward, backward), randn(4, 3), randn(4, 3), select=RULES)
    assert right_when_equal.subjects[0].assumptions == ("dim 0 of 'k' equals dim 0 of 'q'",)


def test_numbers_that_forward_refuses_are_taken_from_the_example() -> None:
    def forward(ctx, a):
        if not bool((a > 0).all()):
            raise ValueError("positive numbers only")
        ctx.save_for_backward(a)
        return a.log().sum(-1) * a.sum(-1)

    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        g = g.unsqueeze(-1)
        return g * (a.sum() / a + a.log().sum(-1, keepdim=True))

    positive = torch.tensor([0.5, 1.5, 0.7], dtype=torch.float64, requires_grad=True)
    report = gs.check(function(forward, backward), positive, select=RULES)
    assert report.subjects[0].assumptions == ("'a' has 1 dimension",)


def test_an_example_of_zeros_hides_nothing() -> None:
    """At zeros a product changes with neither factor, and still both are read by forward."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w.t()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return -(g @ w), g.t() @ x

    report = gs.check(Product, torch.zeros(4, 3, requires_grad=True), torch.zeros(5, 3, requires_grad=True))
    assert report.subjects[0].verdict == "refuted"


class PickedLogit(Function):
    """Right for as many targets as rows. `gather` takes fewer, too, and a batch of one does not show that they belong together."""

    @staticmethod
    def forward(ctx: Any, x: Any, target: Any) -> Any:
        ctx.save_for_backward(x, target)
        return (x.logsumexp(1, keepdim=True) - x.gather(1, target[:, None])).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, target = ctx.saved_tensors
        return g * x.softmax(1).scatter_add(1, target[:, None], -torch.ones_like(x)), None


class ForgetsRows(PickedLogit):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        grad, _ = PickedLogit.backward(ctx, g)
        return torch.cat([grad[:1], 2 * grad[1:]]), None


def test_a_batch_of_one_grows_in_every_input_at_once() -> None:
    x, target = torch.randn(1, 3, dtype=torch.float64, requires_grad=True), torch.tensor([1])
    right = gs.check(PickedLogit, x, target)
    assert not right.errors and right.subjects[0].verdict == "verified", right
    wrong = gs.check(ForgetsRows, x, target)
    assert [f.rule for f in wrong.errors] == ["shape-dependent"], wrong


def test_one_row_does_not_make_a_permutation_of_several_the_same_one() -> None:
    class PermuteRows(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, order: Any) -> Any:
            ctx.save_for_backward(order)
            return x[order]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (order,) = ctx.saved_tensors
            return g[order.argsort()], None

    report = gs.check(PermuteRows, torch.randn(1, 3, requires_grad=True), torch.tensor([0]))
    assert not report.errors, report


def test_infinite_numbers_beside_zeros_do_not_stop_the_search() -> None:
    class Masked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, bias: Any) -> Any:
            ctx.save_for_backward(x, bias)
            return x * torch.isfinite(bias)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            _, bias = ctx.saved_tensors
            return g * torch.isfinite(bias), None

    never = torch.full((3,), float("-inf"))
    report = gs.check(Masked, torch.zeros(3, requires_grad=True), never)
    assert report.subjects[0].verdict == "verified", report

"""Labels, indices and digits: what forward itself asks for is tried, what nobody means is not."""

from __future__ import annotations

import torch

import gradsmith as gs

LOGITS = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
LABELS = torch.tensor([0, 2, 1])


def named(report: gs.Report) -> set[str]:
    return {f.rule for f in report.findings if f.severity != "info"}


class CrossEntropy(torch.autograd.Function):
    """gather takes fewer labels than there are rows; nobody has more scores than labels."""

    @staticmethod
    def forward(ctx, logits, labels):
        ctx.save_for_backward(logits, labels)
        return -logits.log_softmax(-1).gather(1, labels[:, None]).mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, labels = ctx.saved_tensors
        one_hot = torch.zeros_like(logits).scatter(1, labels[:, None], 1.0)
        return grad_output * (logits.softmax(-1) - one_hot) / logits.shape[0], None


def test_a_batch_is_not_split_from_its_labels():
    report = gs.check(CrossEntropy, LOGITS, LABELS)
    assert named(report) == set() and report.ok


class Rows(torch.autograd.Function):
    """A table is no batch: it may have any number of rows, also that of the indices."""

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        return table[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        return grad_output.new_zeros(index.shape[0], *grad_output.shape[1:]).index_add(0, index, grad_output), None


def test_a_table_is_resized_without_its_indices():
    report = gs.check(Rows, torch.randn(3, 2, dtype=torch.float64, requires_grad=True), torch.tensor([2, 0, 1]))
    assert [(f.rule, f.severity) for f in report.findings if "dim 0 of 'table'" in f.message] == [
        ("shape-dependent", "info")
    ]


class Ignoring(torch.autograd.Function):
    """Forward divides by the labels that count, backward by all."""

    @staticmethod
    def forward(ctx, logits, labels):
        counts = labels != -100
        safe = labels.clamp(min=0)
        ctx.save_for_backward(logits, safe, counts)
        each = -logits.log_softmax(-1).gather(1, safe[:, None]).squeeze(1)
        return (each * counts).sum() / counts.sum()

    @staticmethod
    def backward(ctx, grad_output):
        logits, safe, counts = ctx.saved_tensors
        one_hot = torch.zeros_like(logits).scatter(1, safe[:, None], 1.0)
        return grad_output * (logits.softmax(-1) - one_hot) * counts[:, None] / logits.shape[0], None


class IgnoringRight(Ignoring):
    @staticmethod
    def backward(ctx, grad_output):
        logits, safe, counts = ctx.saved_tensors
        one_hot = torch.zeros_like(logits).scatter(1, safe[:, None], 1.0)
        return grad_output * (logits.softmax(-1) - one_hot) * counts[:, None] / counts.sum(), None


def test_a_label_that_forward_ignores_is_tried():
    assert named(gs.check(Ignoring, LOGITS, LABELS)) == {"option-dependent"}
    assert named(gs.check(IgnoringRight, LOGITS, LABELS)) == set()


class SegmentMean(torch.autograd.Function):
    """The example is a permutation, but forward adds up by it: an index may occur twice."""

    @staticmethod
    def forward(ctx, x, index):
        count = torch.bincount(index, minlength=3).clamp(min=1).to(x.dtype)
        ctx.save_for_backward(index, count)
        return x.new_zeros(3, x.shape[1]).index_add(0, index, x) / count[:, None]

    @staticmethod
    def backward(ctx, grad_output):
        index, _ = ctx.saved_tensors
        return grad_output[index], None


class SegmentMeanRight(SegmentMean):
    @staticmethod
    def backward(ctx, grad_output):
        index, count = ctx.saved_tensors
        return (grad_output / count[:, None])[index], None


def test_an_index_that_forward_accumulates_by_may_occur_twice():
    assert named(gs.check(SegmentMean, LOGITS, LABELS)) == {"repeated-index"}
    assert named(gs.check(SegmentMeanRight, LOGITS, LABELS)) == set()


class Single(torch.autograd.Function):
    """Computes in float32 and returns float32, whatever it is given: its gradient has no more digits, and ties are none."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.float() @ w.float()

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return (grad_output @ w.float().T).to(x.dtype), (x.float().T @ grad_output).to(w.dtype)


def test_a_forward_that_answers_in_float32_is_judged_by_float32():
    w = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    report = gs.check(Single, LOGITS, w)
    assert named(report) == set() and report.ok


class Turn(torch.autograd.Function):
    """Halves of size 1 would be broadcast against a table of two columns: forward takes them, and nobody means them."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    @staticmethod
    def backward(ctx, grad_output):
        cos, sin = ctx.saved_tensors
        a, b = grad_output.chunk(2, -1)
        return torch.cat([a * cos + b * sin, b * cos - a * sin], -1), None, None


def test_a_size_that_can_only_shrink_is_held_by_another():
    table = torch.randn(3, 2, dtype=torch.float64)
    report = gs.check(Turn, LOGITS, table, table.flip(0))
    assert named(report) == set() and report.ok


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *xs):
        ctx.xs = xs
        return sum(x.square().sum() for x in xs)

    @staticmethod
    def backward(ctx, grad_output):
        return tuple(2 * grad_output * x for x in ctx.xs)


def test_inputs_in_a_tuple_on_ctx_are_inputs_on_ctx():
    assert named(gs.check(Kept, LOGITS, LOGITS.detach()[:2].clone().requires_grad_())) == {"tensor-on-ctx"}

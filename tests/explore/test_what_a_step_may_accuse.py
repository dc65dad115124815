"""Steps beyond the inputs: what they may accuse, and what a step itself breaks."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs
from gradsmith.checking import verdict
from gradsmith.lab.explore.drawing import domains_of

X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.mark.parametrize(
    ("kind", "outcome", "weight"),
    [
        ("values", "wrong", "error"), ("values", "none", "error"), ("values", "raises", "warning"),
        ("branch", "non-finite", "error"), ("clamp", "wrong", "assumption"), ("named option", "wrong", "error"),
        ("named option", "raises", "warning"), ("invented option", "wrong", "assumption"), ("invented option", "none", "info"),
        ("gradient control", "wrong", "warning"), ("size", "wrong", "error"), ("size", "raises", "info"),
        ("ids", "wrong", "error"), ("ids", "raises", "info"), ("structure", "wrong", "assumption"),
        ("requires grad", "wrong", "error"), ("requires grad", "none", "info"), ("requires grad", "raises", "warning"),
        ("state", "wrong", "warning"),
    ],
)  # fmt: skip
def test_the_table_of_verdicts(kind: str, outcome: str, weight: str) -> None:
    assert verdict.of_explored(kind, outcome) == weight


def test_a_raise_of_the_subjects_own_is_a_remark() -> None:
    assert verdict.of_explored("values", "raises", own=True) == "info"


class Product(torch.autograd.Function):
    """x @ w, where the transpose is forgotten: right for a symmetric w."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w, x.mT @ grad_output


def test_a_broken_structure_is_an_assumption_and_no_error() -> None:
    half = X.detach()[:, :3]
    symmetric = (half + half.mT).requires_grad_()
    report = gs.check(Product, X.detach().mT.clone().requires_grad_(), symmetric)
    assert [f.rule for f in report.findings if f.severity != "info"] == ["assumes"]
    assert report.subjects[0].verdict == "verified"
    assert report.subjects[0].assumptions == ("'w' is symmetric",)


class ExpOfClamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(max=15.0).exp()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0].clamp(max=15.0).exp()


def test_the_flat_side_of_a_clamp_is_an_assumption_with_its_bound() -> None:
    subject = gs.check(ExpOfClamp, X).subjects[0]
    assert subject.assumptions == ("'x' <= 15",) and subject.verdict == "verified"


class LogOfPositive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert (x > 0).all()
        ctx.save_for_backward(x)
        return x.log()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output / ctx.saved_tensors[0]


def test_where_forward_asserts_its_domain_nothing_is_accused() -> None:
    report = gs.check(LogOfPositive, (X.detach().abs() + 0.01).requires_grad_())
    assert report.ok and not [f for f in report.findings if f.severity != "info"]


class PerChannel(torch.autograd.Function):
    """Four dimensions with a meaning each; a fifth only happens to broadcast."""

    @staticmethod
    def forward(ctx, x):
        ctx.count = x.numel() / x.size(1)
        return x - x.sum((0, 2, 3))[None, :, None, None] / ctx.count

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.sum((0, 2, 3))[None, :, None, None] / ctx.count


def test_no_fifth_dimension_is_asked_of_images():
    report = gs.check(PerChannel, torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True))
    assert not [f for f in report.findings if f.severity != "info"]


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.shape = weight.shape
        return weight[index]

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output.new_zeros(ctx.shape)
        grad[ctx.saved_tensors[0]] = grad_output
        return grad, None


def test_a_choice_of_rows_may_repeat_itself():
    weight = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    found = gs.check(Rows, weight, torch.tensor([2, 1, 0])).findings
    assert {"repeated-index", "assumes"} & {f.rule for f in found if f.severity != "info"}
    found = gs.check(Rows, weight, torch.tensor([5, 4, 3, 2, 1, 0])).findings
    assert "repeated-index" not in {f.rule for f in found}


class Turned(torch.autograd.Function):
    """Halves trade places; where there are no halves, nothing is promised."""

    @staticmethod
    def forward(ctx, x, sine):
        ctx.save_for_backward(sine)
        a, b = x.chunk(2, -1)
        return x + torch.cat((-b, a), -1) * sine

    @staticmethod
    def backward(ctx, grad_output):
        (sine,) = ctx.saved_tensors
        a, b = (grad_output * sine).chunk(2, -1)
        return grad_output + torch.cat((b, -a), -1), None


class TurnedBySlices(Turned):
    @staticmethod
    def forward(ctx, x, sine):
        ctx.save_for_backward(sine)
        half = x.shape[-1] // 2
        return x + torch.cat((-x[..., half:], x[..., :half]), -1) * sine


def test_no_odd_size_is_asked_of_what_is_cut_in_halves():
    for function in (Turned, TurnedBySlices):
        report = gs.check(function, X, X.detach().cos())
        assert report.subjects[0].verdict == "verified", function
        assert not any(f.rule == "shape-dependent" for f in report.findings), function


class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points):
        squares = (points[:, None] - points[None]).square().sum(-1)
        far = squares.argmax(1)
        ctx.save_for_backward(points, far)
        return squares.gather(1, far[:, None])[:, 0]

    @staticmethod
    def backward(ctx, grad_output):
        points, far = ctx.saved_tensors
        rows = far[:, None].expand(-1, 3)
        part = 2 * grad_output[:, None] * (points - points.gather(0, rows))
        return part.scatter_add(0, rows, -part)


def test_points_in_space_need_no_fourth_coordinate():
    report = gs.check(Nearest, X[:, :3].detach().requires_grad_())
    assert report.subjects[0].verdict == "verified"
    assert [f.severity for f in report.findings if f.rule == "shape-dependent"] == ["info"]


class CubeRoot(torch.autograd.Function):
    """The third norm of rows; backward forgets the sign, which positive numbers do not need."""

    @staticmethod
    def forward(ctx, x):
        norm = x.abs().pow(3).sum(-1).pow(1 / 3)
        ctx.save_for_backward(x, norm)
        return norm

    @staticmethod
    def backward(ctx, grad_output):
        x, norm = ctx.saved_tensors
        return (grad_output / norm.square()).unsqueeze(-1) * x.abs().square()


class Rolled(torch.autograd.Function):
    """Rolled back by the wrong number of steps, unless it is half of the row."""

    @staticmethod
    def forward(ctx, x, shift):
        ctx.shift = shift
        return torch.roll(x, shift, -1)

    @staticmethod
    def backward(ctx, grad_output):
        return torch.roll(grad_output, ctx.shift, -1), None


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_positive_inputs_are_an_assumption_at_every_size() -> None:
    report = gs.check(CubeRoot, (drawn(3, 4).abs() + 0.1).requires_grad_())
    assert report.ok, report
    assert any("negative" in sentence or "positive" in sentence for sentence in report.subjects[0].assumptions)


def test_domains_of_the_example_count_where_chance_would_not() -> None:
    few = drawn(4).abs()
    assert not domains_of(few)
    assert [d.name for d in domains_of(few, known=("positive", "not negative"))] == ["positive", "not negative"]
    assert not domains_of(-few, known=("positive",))


def test_values_of_one_option_are_one_assumption() -> None:
    report = gs.check(Rolled, drawn(3, 4).requires_grad_(), 2)
    sentences = [s for s in report.subjects[0].assumptions if "shift" in s]
    assert len(sentences) == 1 and sentences[0].startswith("`shift` is not ")


class FlatBias(torch.autograd.Function):
    """The bias has one number per column: a sum over everything is wrong, and no other guess excuses it."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x, grad_output.sum()


def test_a_bias_is_not_guessed_away():
    x, w, b = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((3, 4), (5, 4), (5,)))
    assert gs.check(FlatBias, x, w, b).subjects[0].verdict == "refuted"


class NewtonSchulzRoot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, num_iters):
        size = A.norm(dim=(-2, -1), keepdim=True)
        unit = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A)
        y, z = A / size, unit.clone()
        for _ in range(num_iters):
            t = (3 * unit - z @ y) / 2
            y, z = y @ t, t @ z
        root = y * size.sqrt()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (root,) = ctx.saved_tensors
        n = root.shape[-1]
        unit = torch.eye(n, dtype=root.dtype, device=root.device)
        system = torch.stack(
            [torch.kron(r.mT.contiguous(), unit) + torch.kron(unit, r) for r in root.reshape(-1, n, n)]
        )
        flat = torch.linalg.solve(system.mT, g.reshape(-1, n, n).mT.reshape(-1, n * n))
        return flat.reshape(-1, n, n).mT.reshape(g.shape), None


def test_symmetric_examples_stay_symmetric_at_other_sizes():
    drawn = torch.randn(2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = (drawn @ drawn.mT + 3 * torch.eye(3, dtype=torch.float64)).requires_grad_()
    report = gs.check(NewtonSchulzRoot, given, 16)
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


def test_a_matrix_of_one_element_keeps_what_the_example_is() -> None:
    drawn = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    definite = (drawn @ drawn.mT + torch.eye(4, dtype=torch.float64)).requires_grad_()
    report = gs.check(lambda x: torch.linalg.cholesky_ex(x).L, definite)
    assert not report.errors


def test_one_place_that_is_written_to_does_not_become_the_same_place_twice() -> None:
    x, values = (torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for n in (5, 1))
    report = gs.check(lambda x, at, values: x.index_put((at,), values), x, torch.tensor([4]), values)
    assert not report.errors


def test_a_size_that_ids_do_not_fit_into_is_not_taken() -> None:
    # PyTorch's own ctc_loss reads beyond the end of the scores for a label that is not there, and ends the process.
    scores = torch.randn(6, 2, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1, 4, 3], [2, 4, 1]])

    def loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.ctc_loss(scores.log_softmax(-1), labels, (6, 6), (3, 2))

    assert gs.check(loss, scores, labels).subjects[0].verdict == "verified"

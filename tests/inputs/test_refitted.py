"""A guess that forward lets pass and backward does not; and what else the author of a Function may have meant."""

from __future__ import annotations

import torch

import gradsmith as gs


class OneStep(torch.autograd.Function):
    """Divides by one number; forward would take as many numbers as there are data."""

    @staticmethod
    def forward(ctx, value, scale):
        ctx.save_for_backward(value, scale)
        return value / scale

    @staticmethod
    def backward(ctx, grad_output):
        value, scale = ctx.saved_tensors
        return grad_output / scale, -(grad_output * value / scale**2).sum().unsqueeze(0)


def test_a_summed_gradient_is_of_one_number():
    (subject,) = gs.check(OneStep).subjects
    assert subject.verdict == "verified", subject.reason


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


class Shifted(torch.autograd.Function):
    """Writes into its input, and the second time nothing changes."""

    @staticmethod
    def forward(ctx, x):
        top = x.max(-1, keepdim=True).values
        torch.sub(x, top, out=x)
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        inner = grad_output * y
        return inner - (y == 1) * inner.sum(-1, keepdim=True)


def test_trying_out_a_guess_leaves_no_marks_on_it():
    assert "inplace-input" in {f.rule for f in gs.check(Shifted).findings}


class BallDistance(torch.autograd.Function):
    """Norms are clamped because beyond the ball the root is of a negative number."""

    @staticmethod
    def forward(ctx, u, v):
        su, sv = (u * u).sum(-1).clamp(0, 1 - 1e-5), (v * v).sum(-1).clamp(0, 1 - 1e-5)
        ctx.save_for_backward(u, v)
        return ((1 - su) * (1 - sv)).sqrt()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        u, v = ctx.saved_tensors
        au, av = 1 - (u * u).sum(-1, keepdim=True), 1 - (v * v).sum(-1, keepdim=True)
        root = (au.clamp(min=1e-5) * av.clamp(min=1e-5)).sqrt()
        return -g[..., None] * u * av / root, -g[..., None] * v * au / root


class BallDistanceWrong(BallDistance):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        gu, gv = BallDistance.backward(ctx, g)
        return gu / 2, gv


def test_beyond_the_ball_a_guess_accuses_nobody():
    right, wrong = gs.check(BallDistance), gs.check(BallDistanceWrong)
    assert "need no clamping" in right.subjects[0].reason
    assert not [f for f in right.findings if f.severity != "info"]
    assert [f for f in wrong.findings if f.severity != "info"]


class Root(torch.autograd.Function):
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


def test_a_root_is_judged_where_its_iteration_converges():
    report = gs.check(Root)
    assert report.subjects[0].verdict != "refuted", report.subjects[0].reason
    assert not [f for f in report.findings if f.severity == "error"]


def test_symmetric_examples_stay_symmetric_at_other_sizes():
    drawn = torch.randn(2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = (drawn @ drawn.mT + 3 * torch.eye(3, dtype=torch.float64)).requires_grad_()
    report = gs.check(Root, given, 16)
    assert report.subjects[0].verdict == "verified", report.subjects[0].reason


class ScaleAll(torch.autograd.Function):
    """A number is kept on ctx, as it should be; a guess may make a tensor of it."""

    @staticmethod
    def forward(ctx, scale, *xs):
        ctx.scale = scale
        return tuple(scale * x for x in xs)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *(ctx.scale * g for g in grads))


def test_what_was_only_guessed_to_be_a_tensor_is_not_blamed_for_it():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert not [f for f in gs.check(ScaleAll).findings if f.severity != "info"]
    assert [f.rule for f in gs.check(ScaleAll, torch.tensor(2.0), x).findings if f.severity != "info"] == [
        "tensor-on-ctx"
    ]

"""Guessed inputs: what they may accuse (a mistake on any inputs) and what they may not (what the guess itself breaks)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import functions_of_functions
import functions_of_objects
import functions_of_subclasses
import functions_with_words
import functions_without_inputs
import lenient_functions
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.guess import guess
from gradsmith.lab.subject.importing import import_file
from gradsmith.lab.subject.target import resolve


def test_a_wrong_gradient_is_refuted_on_guessed_inputs():
    report = gs.check(functions_without_inputs.Doubled, level="quick")
    assert report.subjects[0].verdict == "refuted"
    assert {f.argument for f in report.errors} == {"weight"}


def test_symmetry_taken_for_granted_is_asked_about_not_accused():
    report = gs.check(functions_without_inputs.BilinearOfSymmetric, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert not [f for f in report.errors if f.rule == "wrong-gradient"]


@pytest.mark.parametrize(
    "function",
    [lenient_functions.Turned, lenient_functions.Root, lenient_functions.SpectralRoot, lenient_functions.Mix],
    ids=lambda function: function.__name__,
)
def test_a_guess_that_breaks_what_the_author_means_accuses_nobody(function):
    report = gs.check(function)
    assert report.subjects[0].verdict == "unverified"
    assert not [f for f in report.findings if f.severity == "error"]


def test_declared_inputs_that_fit_are_verified_at_other_sizes_too():
    order = torch.tensor([2, 0, 3, 1])
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    report = gs.check(lenient_functions.Turned, x, order, order.argsort())
    assert report.subjects[0].verdict == "verified"
    assert not [f for f in report.findings if f.severity == "error"]


def test_a_wrong_gradient_is_still_named():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            ctx.save_for_backward(x)
            return x.square() * alpha

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x * ctx.alpha, None

    assert gs.check(Broken).subjects[0].verdict == "refuted"


def severities(report):
    return {f.severity for f in report.findings if f.rule == "wrong-gradient"}


@pytest.mark.parametrize(
    ("function", "severity"),
    [
        (lenient_functions.FactoredForm, "info"),  # it calls what is only defined for symmetric matrices
        (lenient_functions.QuadraticForm, "warning"),  # that its docstring speaks of them is no evidence
        (lenient_functions.TransposeForgotten, "warning"),  # a forgotten transposition looks the same
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_only_symmetry_makes_right_is_never_silence(function, severity):
    report = gs.check(function, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert severities(report) == {severity}


def test_a_function_that_never_makes_it_right_is_no_excuse():
    report = gs.check(lenient_functions.Mapped, level="quick")
    assert report.subjects[0].verdict == "refuted"


def test_functions_that_have_to_fit_each_other_leave_a_warning():
    report = gs.check(lenient_functions.Slope, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert severities(report) == {"warning"}


def test_the_authors_default_is_in_range():
    report = gs.check(lenient_functions.RootByDefault, level="quick")
    assert "alpha" not in report.subjects[0].reason
    assert severities(report) == {"warning"}


def test_an_input_only_backward_reads_does_not_excuse_a_sign():
    # Guessed indices run backwards, and so undo each other: the sign is all that is wrong.
    class Flipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index, undo_index):
            ctx.save_for_backward(undo_index)
            return x.gather(-1, index)

        @staticmethod
        def backward(ctx, grad_output):
            (undo_index,) = ctx.saved_tensors
            return -grad_output.gather(-1, undo_index), None, None

    report = gs.check(Flipped, level="quick")
    assert report.subjects[0].verdict == "refuted"


def test_values_that_forward_warns_about_are_replaced():
    matrix, _ = guess(resolve(lenient_functions.Iterated)).args
    assert bool((torch.linalg.eigvals(matrix.detach()).real > 0).all())
    assert gs.check(lenient_functions.Iterated, isolate=False, level="quick").subjects[0].verdict != "refuted"


def test_an_attribute_that_only_a_wrong_guess_lacks_accuses_nobody():
    assert not any(f.rule == "backward-raised" for f in gs.check(lenient_functions.Unlooked).findings)


def test_an_attribute_that_nothing_has_is_an_error():
    (finding,) = [f for f in gs.check(lenient_functions.Misspelt).findings if f.rule == "backward-raised"]
    assert finding.severity == "error"


def test_a_fixed_point_is_right_where_there_is_one():
    report = gs.check(lenient_functions.AtRest)
    assert report.subjects[0].verdict in ("verified", "unverified")
    assert not [f for f in report.findings if f.rule == "wrong-gradient" and f.severity != "info"]


class Affine(torch.autograd.Function):
    """`flag` came later, and backward was forgotten: the one mistake there is."""

    @staticmethod
    def forward(ctx, x, w, b, flag):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w, grad_output.t() @ x, grad_output.sum(0)


def test_shapes_are_not_blamed_where_the_count_keeps_backward_from_running():
    report = gs.check(Affine)
    assert [f.rule for f in report.findings if f.severity == "error"] == ["return-count"]


class ReducedTooFar(torch.autograd.Function):
    """The count is right, and the shape of the gradient is wrong on any inputs."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (2 * x * grad_output).sum()


def test_a_shape_that_is_wrong_on_any_inputs_is_an_error():
    assert "gradient-shape" in [f.rule for f in gs.check(ReducedTooFar).findings if f.severity == "error"]


class HalvingRoot(torch.autograd.Function):
    """y + y ** 3 = x, found by halving an interval; the derivative is that of the limit."""

    @staticmethod
    def forward(ctx, x, tol=1e-3):
        low, high = -1 - x.abs(), 1 + x.abs()
        while (high - low).max() > tol:
            middle = (low + high) / 2
            below = middle + middle**3 < x
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        y = (low + high) / 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output / (1 + 3 * y * y), None


class Angle(torch.autograd.Function):
    """Backward must not divide by zero."""

    @staticmethod
    def forward(ctx, y, x, eps=1e-6):
        ctx.save_for_backward(y, x)
        ctx.eps = eps
        return torch.atan2(y, x)

    @staticmethod
    def backward(ctx, grad_output):
        y, x = ctx.saved_tensors
        below = x * x + y * y + ctx.eps
        return grad_output * x / below, -grad_output * y / below, None


@pytest.mark.parametrize("function", [HalvingRoot, Angle])
def test_a_tolerance_that_can_be_as_small_as_one_likes_accuses_nobody(function):
    report = gs.check(function)
    assert [f for f in report.findings if f.severity != "info" and f.rule != "intermediate-saved"] == []
    assert report.subjects[0].verdict == "unverified"


class ForgottenEps(torch.autograd.Function):
    """Here forward computes with eps, and backward forgets it."""

    @staticmethod
    def forward(ctx, x, eps=1e-3):
        ctx.save_for_backward(x)
        return x / (x * x + eps).sqrt()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 / x.abs() - x * x / x.abs() ** 3), None


def test_an_eps_that_forward_computes_with_belongs_to_the_derivative():
    assert gs.check(ForgottenEps).subjects[0].verdict == "refuted"


class Unused(torch.autograd.Function):
    """A function that nobody calls makes no gradient wrong."""

    @staticmethod
    def forward(ctx, x, how: Callable[[torch.Tensor], torch.Tensor]):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3 * ctx.saved_tensors[0], None


def test_a_function_that_is_never_called_excuses_nothing():
    assert gs.check(Unused, level="quick").subjects[0].verdict == "refuted"


class OtherWeights(torch.autograd.Function):
    """Feedback alignment: what goes back goes through weights of its own."""

    @staticmethod
    def forward(ctx, x, weight, back):
        ctx.save_for_backward(x, weight, back)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, _, back = ctx.saved_tensors
        return grad_output @ back, grad_output.t() @ x, torch.zeros_like(back)


def test_weights_for_the_way_back_are_the_author_s_to_choose():
    report = gs.check(OtherWeights)
    assert [f.rule for f in report.findings if f.severity == "error"] == []
    assert report.subjects[0].verdict == "unverified"
    assert "undeclared-surrogate" in {f.rule for f in report.findings}


class Drawn(torch.autograd.Function):
    """`x.new` makes a tensor of that size; of a tensor it would make another one with the same memory."""

    @staticmethod
    def forward(ctx, mean, extent):
        return mean + mean.new(extent).normal_()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


def test_what_was_only_guessed_to_be_a_tensor_is_not_written_into():
    report = gs.check(Drawn)
    assert "inplace-input" not in [f.rule for f in report.findings if f.severity != "info"]


class ProgrammedWeights(torch.autograd.Function):
    """The gradient of forward without what is drawn there."""

    @staticmethod
    def forward(ctx, w):
        return w * (1 + 0.1 * torch.randn_like(w))

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ForgottenMask(torch.autograd.Function):
    """Nothing speaks for this one."""

    @staticmethod
    def forward(ctx, w):
        return w * (torch.rand_like(w) > 0.5) * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def test_noise_that_gradients_pass_by_looks_meant():
    assert gs.check(ProgrammedWeights).subjects[0].verdict == "unverified"
    assert gs.check(ForgottenMask).subjects[0].verdict == "refuted"


class Replaced(torch.autograd.Function):
    """Hands the caller's own gradient back."""

    @staticmethod
    def forward(ctx, x, wanted):
        ctx.save_for_backward(wanted)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        (wanted,) = ctx.saved_tensors
        return wanted, None


def test_a_gradient_that_replaces_that_of_the_identity_is_no_error():
    assert [f.rule for f in gs.check(Replaced).findings if f.severity == "error"] == []


class PickedProduct(torch.autograd.Function):
    """Multiplies what goes to the same place; `places` is a list, though scatter takes more dimensions, too."""

    @staticmethod
    def forward(ctx, src, index, out_size):
        out = src.new_ones(out_size).scatter_reduce(0, index, src, "prod")
        ctx.save_for_backward(out, src, index)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        out, src, index = ctx.saved_tensors
        return (grad_out * out)[index] / src, None, None


class PickedTwice(PickedProduct):
    @staticmethod
    def backward(ctx, grad_out):
        out, src, index = ctx.saved_tensors
        return 2 * (grad_out * out)[index] / src, None, None


def test_an_index_of_more_dimensions_than_were_meant():
    report = gs.check(PickedProduct, level="quick")
    assert report.subjects[0].verdict == "verified"  # src gets the one dimension that backward returns
    assert [f.rule for f in report.findings if f.severity != "info"] == []
    assert severities(gs.check(PickedTwice, level="quick")) == {"error"}


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
    assert right.subjects[0].verdict == "unverified"
    assert not [f for f in right.findings if f.severity != "info"]
    assert [f for f in wrong.findings if f.severity != "info"]


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


def test_a_root_is_judged_where_its_iteration_converges():
    report = gs.check(NewtonSchulzRoot)
    assert report.subjects[0].verdict != "refuted", report.subjects[0].reason
    assert not [f for f in report.findings if f.severity == "error"]


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


X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


class SafeLog(torch.autograd.Function):
    """The clamp keeps log inside its domain; it is not what the Function is about."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=1e-6).log()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / x.clamp(min=1e-6)


class HalfWave(torch.autograd.Function):
    """The clamp is what this one is about, and backward forgot it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


class Leaky(torch.autograd.Function):
    """A slope where forward is flat, so that what lies there can come back."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x < 0, 0.1 * grad_output, grad_output)


class PassedThrough(Leaky):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.ones_like(x)


def test_a_slope_where_forward_is_flat_may_be_meant_where_backward_tells_the_elements_apart():
    report = gs.check(Leaky)
    assert report.subjects[0].verdict == "unverified"
    assert severities(report) == {"warning"}
    assert gs.check(Leaky, X).subjects[0].verdict == "refuted"


def test_a_clamp_that_backward_does_not_know_of_is_a_mistake():
    assert gs.check(PassedThrough).subjects[0].verdict == "refuted"


def test_beyond_a_guard_of_the_domain_a_guess_accuses_nobody():
    report = gs.check(SafeLog)
    assert not [f for f in report.findings if f.severity != "info"]
    assert report.subjects[0].verdict == "unverified"
    assert gs.check(SafeLog, X).subjects[0].verdict == "refuted"
    assert gs.check(HalfWave).subjects[0].verdict == "refuted"


class SolveOrGiveUp(torch.autograd.Function):
    """Where the matrix is not positive definite there is no gradient: then nothing was seen of it."""

    @staticmethod
    def forward(ctx, H, b):
        factor, info = torch.linalg.cholesky_ex(H)
        ctx.failed = bool(info.any())
        if ctx.failed:
            return torch.zeros_like(b)
        x = torch.cholesky_solve(b, factor)
        ctx.save_for_backward(H, x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        if ctx.failed:
            return None, None
        H, x = ctx.saved_tensors
        z = torch.linalg.solve(H, grad_output)
        return -2 * z @ x.mT, z


def test_inputs_without_any_gradient_are_not_what_a_guess_settles_for():
    assert gs.check(SolveOrGiveUp).subjects[0].verdict != "verified"


class WithTranspose(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, A, AT):
        ctx.save_for_backward(AT)
        return A @ x

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.saved_tensors[0] @ grad_output, None, None


def test_a_transpose_that_is_passed_along_is_no_accusation():
    report = gs.check(WithTranspose)
    assert not [f for f in report.findings if f.severity != "info"]
    assert report.subjects[0].verdict == "unverified"


class PaddedRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, indices, weight, padding_idx):
        ctx.save_for_backward(indices)
        ctx.rows, ctx.padding_idx = weight.shape[0], -1 if padding_idx is None else padding_idx
        return torch.nn.functional.embedding(indices, weight, padding_idx)

    @staticmethod
    def backward(ctx, grad_output):
        (indices,) = ctx.saved_tensors
        backward = torch.ops.aten.embedding_dense_backward.default
        return None, backward(grad_output, indices, ctx.rows, ctx.padding_idx, False), None


def test_no_row_is_guessed_to_be_padding():
    assert gs.check(PaddedRows).subjects[0].verdict == "verified"


class Entropy(torch.autograd.Function):
    """Right for labels of 0 and 1, the only ones there are."""

    @staticmethod
    def forward(ctx, logits, target):
        p = logits.sigmoid()
        ctx.save_for_backward(p, target)
        return -(target * p.log() + (1 - target) * (1 - p).log()).square().sum()

    @staticmethod
    def backward(ctx, grad_output):
        p, target = ctx.saved_tensors
        hit = 2 * p.log() * (1 - p)
        miss = -2 * (1 - p).log() * p
        return -grad_output * (hit * target + miss * (1 - target)), None


def test_labels_are_zeros_and_ones():
    report = gs.check(Entropy)
    assert [f.severity for f in report.findings if f.rule == "wrong-gradient"] == ["info"]
    assert report.subjects[0].verdict == "unverified"


class Preconditioned(torch.autograd.Function):
    """What goes back to the weight is no derivative, on purpose; nothing in the source says so."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        metric = x.t() @ x + torch.eye(x.shape[1], dtype=x.dtype)
        return grad_output @ weight, torch.linalg.solve(metric, (grad_output.t() @ x).t()).t()


class SignOfTheSum(torch.autograd.Function):
    """A gradient that looks at grad_output, of a forward that is neither a step nor the identity."""

    @staticmethod
    def forward(ctx, x, y):
        return x + 2 * y

    @staticmethod
    def backward(ctx, grad_output):
        share = grad_output / (1 + grad_output.norm())
        return share, 2 * share


class HalfForgotten(torch.autograd.Function):
    """Right wherever y is not above x: so it is meant to be the derivative."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.where(y > x, x * y + x.exp() * y.sin(), x * y)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


@pytest.mark.parametrize("function", [Preconditioned, SignOfTheSum], ids=lambda f: f.__name__)
def test_what_no_mistake_explains_is_a_question_on_a_guess_and_an_error_on_inputs(function) -> None:
    guessed = gs.check(function)
    assert guessed.subjects[0].verdict == "unverified"
    asked = [f for f in guessed.findings if f.severity == "warning" and "The inputs were guessed" in (f.advice or "")]
    assert asked and not guessed.errors
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    other = torch.randn(5 if function is Preconditioned else 3, 4, dtype=torch.float64, requires_grad=True)
    assert gs.check(function, x, other).subjects[0].verdict == "refuted"


def test_a_gradient_that_is_right_at_other_elements_is_meant_to_be_the_derivative() -> None:
    assert gs.check(HalfForgotten).subjects[0].verdict == "refuted"


def module(folder: Path, forward: str, names: str = "x", before: str = "", returns: str = "grad") -> Any:
    """A module with a Function `Op` of this forward, whose first input gets a gradient."""
    head = f"from __future__ import annotations\nimport enum\nimport torch\n\n{dedent(before)}\n\n"
    count = names.count(",")
    text = (
        f"class Op(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, {names}):\n"
        f"{indent(dedent(forward), ' ' * 8)}\n"
        f"    @staticmethod\n    def backward(ctx, grad):\n        return {returns}{', None' * count}\n"
    )
    path = folder / f"asked_for_{abs(hash(forward + before))}.py"
    path.write_text(head + text)
    return import_file(path)


def test_an_exception_about_an_input_that_forward_never_looked_at_accuses_nobody(tmp_path: Path) -> None:
    helper = """
        def named(y):
            if not hasattr(y, "title"):
                raise RuntimeError("expected a format")
            return 2
        """
    made = module(
        tmp_path,
        "ctx.save_for_backward(x, y)\nreturn x * 2",
        "x, y: torch.Tensor",
        helper,
        returns="named(ctx.saved_tensors[1]) * grad",
    )
    report = gs.check(made.Op, isolate=False)
    assert not [f for f in report.findings if f.severity == "error"]
    assert report.subjects[0].verdict == "unverified"


def test_a_function_of_the_real_part_is_not_accused_beside_the_real_axis(tmp_path: Path) -> None:
    made = module(
        tmp_path,
        "if not z.is_complex():\n    raise TypeError('only supported for complex')\nctx.z = z\nreturn torch.sin(z.real) + 0j * z",
        "z",
        returns="grad * torch.cos(ctx.z)",
    )
    report = gs.check(made.Op, isolate=False)
    assert report.subjects[0].verdict == "unverified"


def test_a_wrong_gradient_with_an_object_that_was_built_is_a_question(tmp_path: Path) -> None:
    grid = """
        class Grid:
            def __init__(self, step: float):
                self.step = step
        """
    forward = "ctx.grid = grid\nreturn x * grid.step"
    made = module(tmp_path, forward, "x, grid: Grid", grid, returns="grad * (1 + ctx.grid.step) ** 3")
    report = gs.check(made.Op, isolate=False)
    assert report.subjects[0].verdict == "unverified"
    assert [f.rule for f in report.findings if f.severity == "warning"] == ["wrong-gradient"]


def test_a_factor_is_no_matter_of_which_function_was_guessed():
    report = gs.check(functions_of_functions.BranchTwice, isolate=False)
    assert report.subjects[0].verdict == "refuted"
    assert report.findings[0].rule == "wrong-gradient"


@pytest.mark.parametrize(
    "function",
    [functions_of_functions.Solved, functions_of_functions.GivenSlope, functions_of_functions.Undone],
    ids=lambda f: f.__name__,
)
def test_functions_that_have_to_fit_one_another_accuse_nobody(function):
    report = gs.check(function, isolate=False)
    assert report.subjects[0].verdict == "unverified"
    assert not [f for f in report.findings if f.severity == "error"]


def test_a_batch_that_gather_lets_shrink_alone_is_no_defect():
    report = gs.check(functions_with_words.Interpolate)
    assert not [f for f in report.findings if f.rule == "shape-dependent" and f.severity == "error"]


def test_more_than_forward_reads_is_a_question():
    report = gs.check(functions_of_objects.Paired, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert not [f for f in report.findings if f.severity == "error"]


@pytest.mark.parametrize(
    ("function", "verdict"), [(functions_of_objects.Shared, "unverified"), (functions_of_objects.Handed, "refuted")]
)
def test_a_gradient_that_is_wrong_on_every_domain_is_an_error_if_a_mistake_explains_it(function, verdict):
    assert gs.check(function, level="quick").subjects[0].verdict == verdict
    declared = gs.check(function, gradient="surrogate", level="quick")
    assert not [f for f in declared.findings if f.severity == "error"]


def test_a_right_gradient_beside_a_wrong_one_explains_no_mistake():
    report = gs.check(functions_of_objects.HalfRight, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert severities(report) == {"warning"}


def test_an_iteration_that_was_guessed_too_short_accuses_nobody():
    report = gs.check(functions_of_objects.Halving, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert not [f for f in report.findings if f.severity == "error"]


def test_parts_that_may_not_fit_each_other_accuse_nobody():
    report = gs.check(functions_of_subclasses.OfSmallRest, isolate=False)
    assert report.subjects[0].verdict == "unverified"
    assert not report.errors


class Redirected(torch.autograd.Function):
    """A clamp whose rows, where all of them is below 0, let through what pushes them back."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        back = grad_output.clone()
        inside = back.clone()
        inside[x < 0] = 0
        back[torch.gt(back, 0) & (x < 0)] = 0
        off = inside.flatten(1).norm(dim=1) == 0
        inside[off] = back[off]
        return inside


class WrongBesideATest(torch.autograd.Function):
    """Looks at grad_output, too, and is wrong for another reason."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 1.5, x * x, x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        sane = (grad_output < 1e30).to(x)
        return sane * grad_output * torch.where(x > 1.5, 3 * x, torch.ones_like(x))


def test_a_step_away_too_a_backward_that_looks_at_grad_output_is_asked_about():
    report = gs.check(Redirected)
    assert report.subjects[0].verdict == "unverified"
    assert {f.rule for f in report.findings if f.severity != "info"} == {"undeclared-surrogate"}


def test_to_look_at_grad_output_excuses_nothing_that_is_even_in_it():
    assert gs.check(WrongBesideATest).subjects[0].verdict == "refuted"


class ReadsASparseGradient(torch.autograd.Function):
    """In front of an embedding with sparse=True, whose gradient is sparse; a guess puts nothing of the kind behind it."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return torch.sparse_coo_tensor(grad_output._indices(), 2 * grad_output._values() / 2, grad_output.shape)


def test_a_backward_that_needs_a_sparse_gradient_is_asked_about():
    report = gs.check(ReadsASparseGradient, level="quick")
    assert report.subjects[0].verdict == "unverified"
    assert not [f for f in report.findings if f.severity == "error"]

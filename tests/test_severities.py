"""What is an error, what a warning, what a remark, for ways of writing met in the open; one mistake is said once."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs

X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


class Centred(torch.autograd.Function):
    """setup_context can only save what forward returns, so the centre is an output as well."""

    @staticmethod
    def forward(x):
        centre = x.square().mean(-1, keepdim=True)
        return x * centre, centre

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, grad_output, grad_centre):
        x, centre = ctx.saved_tensors
        return grad_output * centre + 2 * x * (grad_output * x).mean(-1, keepdim=True)


def test_an_output_that_is_only_kept_for_backward_is_a_warning():
    report = gs.check(Centred, X)
    (finding,) = report.findings
    assert (finding.rule, finding.severity) == ("ignored-second-output", "warning")
    assert [(f.rule, f.severity, f.cause) for f in finding.symptoms] == [
        ("wrong-gradient", "warning", "output-ignored")
    ]
    assert "mark_non_differentiable" in finding.advice


class Both(torch.autograd.Function):
    """Here the second output is a result like the first."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, grad_sine, grad_cosine):
        (x,) = ctx.saved_tensors
        return grad_sine * x.cos()


def test_an_output_that_is_a_result_stays_an_error():
    assert gs.check(Both, X).subjects[0].verdict == "refuted"


class Single(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x.float()

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


def test_backward_only_follows_a_forward_that_lost_the_digits():
    found = [f for f in gs.check(Single, X).findings if f.rule == "gradient-dtype"]
    assert [f.severity for f in found] == ["info"]


def linted(source: str) -> list[tuple[str, str]]:
    report = gs.lint_source("import torch\n" + source)
    return [(f.rule, f.message) for f in report.findings if f.severity != "info"]


def test_a_backward_without_a_gradient_never_fits():
    ((rule, message),) = linted("""
class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = external.run(x)
        ctx.save_for_backward(x)
        return result

    @staticmethod
    def backward(ctx):
        return external.run_back(*ctx.saved_tensors)
""")
    assert rule == "backward-arity"
    assert "takes 0 gradients" in message


def test_several_gradients_under_one_test_are_one_mistake():
    ((rule, message),) = linted("""
class Parts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a, b, c):
        ctx.save_for_backward(x, a, b, c)
        return x * a + x * b + x * c

    @staticmethod
    def backward(ctx, grad_output):
        x, a, b, c = ctx.saved_tensors
        grad_x = grad_a = grad_b = grad_c = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * (a + b + c)
        if ctx.needs_input_grad[1]:
            grad_a = grad_output * x
            grad_b = grad_output * x
            grad_c = grad_output * x
        return grad_x, grad_a, grad_b, grad_c
""")
    assert rule == "needs-input-grad-index"
    assert "'b' and 'c'" in message


def test_an_old_style_call_explains_what_is_missing_on_ctx(tmp_path):
    path = tmp_path / "reversal.py"
    path.write_text("""
from torch.autograd import Function


class Reverse(Function):
    def __init__(self, strength):
        self.strength = strength

    def forward(self, x):
        return x.view_as(x)

    def backward(self, grad_output):
        return grad_output * -self.strength


def reverse(x, strength=1.0):
    return Reverse(strength)(x)
""")
    import importlib.util

    spec = importlib.util.spec_from_file_location("reversal", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import sys

    sys.modules["reversal"] = module
    try:
        errors = [f for f in gs.check(module.Reverse, X).findings if f.severity == "error"]
    finally:
        del sys.modules["reversal"]
    assert [f.rule for f in errors] == ["legacy-function"]
    assert {"missing-apply", "backward-raised"} <= {s.rule for s in errors[0].symptoms}


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_scale = 3
        return (grad_scale * x * grad_output).float()


def test_a_narrow_gradient_excuses_rounding_only():
    report = gs.check(Wrong, X)
    assert report.subjects[0].verdict == "refuted"
    assert {f.rule for f in report.findings if f.severity != "info"} == {"wrong-gradient", "gradient-dtype"}


class ElsewhereOnly(torch.autograd.Function):
    """What a machine without the device raises."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        grad = 2 * grad_output
        raise AssertionError("Torch not compiled with CUDA enabled")
        return grad


def test_a_device_that_is_not_here_proves_nothing():
    report = gs.check(ElsewhereOnly, X)
    assert report.subjects[0].verdict == "unverified"
    assert [(f.rule, f.severity) for f in report.findings if f.severity != "info"] == [("backward-raised", "warning")]


def test_reading_what_was_never_saved():
    source = """
class Angle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.alpha = alpha
        return torch.atan(x * alpha)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.alpha / (1 + (ctx.alpha * ctx.saved_tensors[0]) ** 2), None
"""
    assert [rule for rule, _ in linted(source)] == ["unpack-count"]
    assert not linted(source.replace("ctx.alpha = alpha", "ctx.alpha = alpha; keep(ctx, x)"))


class ForwardOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        """Only for inference."""
        raise RuntimeError("this path has no gradient")


class ForwardOnlyInMoreLines(ForwardOnly):
    @staticmethod
    def backward(ctx, grad_output):
        del ctx
        shape = tuple(grad_output.shape)
        raise RuntimeError(f"this path has no gradient, and was given one of shape {shape}")


class ForwardOnlyWithARemainder(ForwardOnly):
    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("not yet")
        return grad_output


class RaisesOnOneSide(ForwardOnly):
    @staticmethod
    def backward(ctx, grad_output):
        if grad_output.ndim > 2:
            return grad_output
        raise RuntimeError("only for images")


@pytest.mark.parametrize("function", [ForwardOnly, ForwardOnlyInMoreLines, ForwardOnlyWithARemainder])
def test_a_backward_that_refuses_on_purpose_is_no_error(function):
    report = gs.check(function, X)
    assert report.subjects[0].verdict == "unverified"
    assert [(f.rule, f.severity) for f in report.findings if f.rule == "backward-raised"] == [
        ("backward-raised", "info")
    ]


def test_a_backward_that_returns_for_others_does_not_refuse():
    report = gs.check(RaisesOnOneSide, X)
    assert [f.severity for f in report.findings if f.rule == "backward-raised"] == ["error"]


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad_output):
        total = grad_output.clone()
        torch.distributed.all_reduce(total)
        return total


def test_a_process_group_that_nobody_started_proves_nothing():
    report = gs.check(Summed, X)
    assert report.subjects[0].verdict == "unverified"
    assert [(f.rule, f.severity) for f in report.findings if f.severity != "info"] == [("backward-raised", "warning")]


class Compressed(torch.autograd.Function):
    """Activations kept as float8 on request; backward is right as far as their digits go."""

    @staticmethod
    def forward(ctx, x, compress):
        ctx.save_for_backward(x.to(torch.float8_e4m3fn) if compress else x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output * ctx.saved_tensors[0].to(grad_output.dtype), None


def test_digits_that_were_given_away_for_memory_are_no_error():
    guessed = gs.check(Compressed)
    assert guessed.subjects[0].verdict == "verified"
    assert not [f for f in guessed.findings if f.severity != "info"]
    asked = [f for f in gs.check(Compressed, X, True).findings if f.rule == "wrong-gradient"]
    assert [f.severity for f in asked] == ["warning"]


class Sampled(torch.autograd.Function):
    """The gradient of logsumexp as one draw from the softmax: right on average, on purpose."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        drawn = torch.distributions.OneHotCategorical(logits=x).sample()
        return grad_output[..., None] * drawn


def test_a_gradient_that_is_sampled_from_a_plain_forward_is_a_warning():
    report = gs.check(Sampled, X)
    assert report.subjects[0].verdict == "unverified"
    assert [(f.rule, f.severity) for f in report.findings if f.severity != "info"] == [("random-backward", "warning")]


class ThroughBounds(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone(), None, None


def test_gradients_through_bounds_look_meant_and_through_a_relu_do_not():
    report = gs.check(ThroughBounds, X, -0.5, 0.5)
    assert [f.rule for f in report.findings if f.severity != "info"] == ["undeclared-surrogate"]
    assert gs.check(ThroughBounds, X, 0.0, None).subjects[0].verdict == "refuted"


class Pairs(torch.autograd.Function):
    """Complex numbers as pairs of real ones: the conjugate is written out."""

    @staticmethod
    def forward(ctx, z):
        assert z.shape[-1] == 2, "complex numbers in pairs"
        ctx.save_for_backward(z)
        return z[..., 0] * z[..., 1]

    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return grad_output[..., None] * z.flip(-1)


def test_pairs_of_real_numbers_need_no_conj():
    report = gs.check(Pairs, torch.randn(3, 2, dtype=torch.float64, requires_grad=True))
    assert not [f for f in report.findings if f.severity != "info"]


DEFAULTED = """
class Spike(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(ctx, x, threshold=1.0):
        ctx.save_for_backward(x)
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs())

"""


def test_a_missing_gradient_for_a_default_depends_on_who_passes_it():
    said = [f.severity for f in gs.lint_source("import torch\n" + DEFAULTED).findings if f.rule == "return-count"]
    assert said == ["warning"]
    assert not linted(DEFAULTED + "spike = Spike.apply\nout = spike(torch.randn(3))\n")
    (passed,) = gs.lint_source(
        "import torch\n" + DEFAULTED + "spike = Spike.apply\nout = spike(torch.randn(3), 0.5)\n"
    ).findings
    assert (passed.rule, passed.severity) == ("return-count", "error")


def test_a_tensor_on_ctx_that_nothing_reads_spoils_no_gradient():
    source = """
class Round(torch.autograd.Function):  # gradsmith: surrogate[straight-through]
    @staticmethod
    def forward(ctx, input):
        ctx.input = input
        return torch.round(input)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()
"""
    assert not linted(source)
    assert linted(source.replace("grad_output.clone()", "grad_output * (ctx.input > 0)"))[0][0] == "tensor-on-ctx"


def test_numbers_without_a_gradient_may_pass_through_numpy():
    source = """
class Fold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, stride):
        steps = torch.tensor([stride])
        ctx.save_for_backward(x, steps)
        return torch.nn.functional.avg_pool1d(x, 2, stride)

    @staticmethod
    def backward(ctx, grad_output):
        x, steps = ctx.saved_tensors
        stride = steps.numpy()[0]
        return torch.nn.functional.interpolate(grad_output, x.shape[-1]) / stride, None
"""
    assert not linted(source)
    assert linted(source.replace("steps.numpy()[0]", "x.numpy()[0]"))[0][0] == "opaque-backward"


def test_a_gradient_computed_by_a_call_needs_grad_output_too():
    source = """
class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return run(x)

    @staticmethod
    def backward(ctx, g):
        return run_backward(ctx.saved_tensors[0])
"""
    assert [rule for rule, _ in linted(source)] == ["ignored-grad-output"]
    assert not linted(source.replace("saved_tensors[0]", "saved_tensors[0], g"))
    assert not linted(source.replace("run_backward(ctx.saved_tensors[0])", "tuple(None for _ in ctx.saved_tensors)"))


def test_a_backward_that_does_nothing_is_no_stub_where_forward_computes():
    source = """
class Later(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        pass
"""
    ((rule, message),) = linted(source)
    assert (rule, "gradient of zero" in message) == ("none-for-tensor", True)
    assert not linted(source.replace("return x.exp()", "pass"))
    assert not linted(source.replace("pass", "..."))


class Dropped(torch.autograd.Function):
    """The scale is forgotten; beyond p = 1 everything is dropped, and zero is no excuse."""

    @staticmethod
    def forward(ctx, x, p):
        keep = (torch.rand_like(x) > p).to(x.dtype)
        ctx.save_for_backward(keep)
        return x * keep / (1 - p)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0], None


def test_where_nothing_flows_nothing_is_right():
    assert gs.check(Dropped).subjects[0].verdict == "refuted"


class GuardedRoot(torch.autograd.Function):
    """An epsilon in the denominator costs every element the same way, which no rounding does."""

    @staticmethod
    def forward(ctx, x):
        root = x.sqrt()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 0.5 / (ctx.saved_tensors[0] + 1e-8)


def test_an_epsilon_is_not_taken_for_lost_digits():
    report = gs.check(GuardedRoot, (X.detach().abs() + 0.5).requires_grad_())
    assert report.subjects[0].verdict == "verified"
    assert not [f for f in report.findings if f.severity != "info"]


class Recomputed(torch.autograd.Function):
    """A checkpoint that, like many in the open, insists on .backward()."""

    scale = 1

    @staticmethod
    def forward(ctx, run, *tensors):
        ctx.run = run
        ctx.save_for_backward(*tensors)
        return run(*tensors)

    @staticmethod
    def backward(ctx, grad_output):
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError("Checkpointing is not compatible with .grad(), please use .backward() if possible")
        tensors = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
        with torch.enable_grad():
            output = ctx.run(*tensors)
        torch.autograd.backward(output, grad_output * Recomputed.scale)
        return None, *(x.grad for x in tensors)


def test_a_checkpoint_that_insists_on_backward_is_judged_by_it():
    inputs = (lambda a, b: torch.sin(a) * b, X, (X * 2).detach().requires_grad_())
    assert gs.check(Recomputed, *inputs).subjects[0].verdict == "verified"
    assert X.grad is None
    Recomputed.scale = 2
    try:
        found = gs.check(Recomputed, *inputs).findings
    finally:
        Recomputed.scale = 1
    assert {(f.rule, f.cause) for f in found if f.severity == "error"} == {("wrong-gradient", "factor")}


class KeptOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.half = x.detach() / 2
        ctx.whole = x.exp()
        return ctx.whole

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.whole + 0 * ctx.half


def test_each_tensor_on_ctx_is_shown_where_it_is_kept():
    report = gs.check(KeptOutput, X)
    shown = {
        f.message.partition("ctx.")[2].partition(":")[0]: f.snippet.strip()
        for f in report.findings
        if f.rule == "tensor-on-ctx"
    }
    assert shown == {"half": "ctx.half = x.detach() / 2", "whole": "ctx.whole = x.exp()"}


class Normalised(torch.autograd.Function):
    """The direction counts as constant, which forward says."""

    @staticmethod
    def forward(ctx, weight, start):
        with torch.no_grad():
            direction = torch.nn.functional.normalize(weight @ start, dim=0)
        length = direction @ weight @ start.cumsum(0)
        ctx.save_for_backward(weight, start, direction, length)
        return weight / length

    @staticmethod
    def backward(ctx, grad_output):
        weight, start, direction, length = ctx.saved_tensors
        inner = (grad_output * weight).sum() / length**2
        return grad_output / length - inner * torch.outer(direction, start.cumsum(0)), None


class NormalisedForgetful(Normalised):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output / ctx.saved_tensors[3], None


def test_what_forward_computes_without_gradients_may_be_held_constant():
    start = torch.ones(4, dtype=torch.float64)
    report = gs.check(Normalised, X, start)
    assert [f.severity for f in report.findings if f.rule == "undeclared-surrogate"] == ["info"]
    assert report.subjects[0].verdict == "unverified"
    assert gs.check(NormalisedForgetful, X, start).subjects[0].verdict == "refuted"


class Picked(torch.autograd.Function):
    """The first value is a whole number that is used as an index: beside it there is none."""

    @staticmethod
    def forward(ctx, x):
        place = {0.0: 0, 1.0: 1}[x[0].item()]
        ctx.place = place
        ctx.save_for_backward(x)
        return x[place + 1] * x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.full_like(x, x[ctx.place + 1].item())
        grad[ctx.place + 1] += x.sum()
        return grad * grad_output


def test_where_nothing_lies_beside_the_inputs_nothing_is_measured():
    (subject,) = gs.check(Picked, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)).subjects
    assert subject.verdict == "unverified"
    assert "forward raises a step away from 'x': KeyError" in subject.reason


class Conjugated(torch.autograd.Function):
    """Returns a gradient that is conjugated by a mark only."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return (grad_output.conj() @ w).conj(), grad_output.t() @ x.conj()


def test_a_gradient_that_is_only_marked_as_conjugated_is_compared():
    (subject,) = gs.check(Conjugated).subjects
    assert subject.verdict == "verified", subject.reason
